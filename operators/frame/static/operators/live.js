/* Reloads the parts of a page that have a data-live address, while the page is visible. With the
 * alarm on, it also reloads the number of new orders while another tab is in front.
 *
 * The rest of the page stays as it is: selections, typed text and open menus. A part that has the
 * keyboard focus is not replaced. A screen reader announces what is new. */
"use strict";

const ALARM = "desk-alarm"; // the browser remembers whether the operator wants it
const alarm = document.querySelector("[data-alarm]");
const pageTitle = document.title;
let arrived = 0;

const wantsAlarm = () => Boolean(alarm?.checked);

if (alarm) {
    try {
        alarm.checked = localStorage.getItem(ALARM) === "1";
    } catch {
        // The browser stores nothing for this site. The alarm is on until the page is left.
    }
    alarm.addEventListener("change", () => {
        if (alarm.checked) ring();
        else document.title = pageTitle;
        try {
            localStorage.setItem(ALARM, alarm.checked ? "1" : "0");
        } catch {
            // As above.
        }
    });
}

/** Two short tones. A browser may refuse them until the person has used the page. */
function ring() {
    const sound = new AudioContext();
    for (const [start, pitch] of [[0, 660], [0.15, 880]]) {
        const tone = new OscillatorNode(sound, {frequency: pitch});
        const volume = new GainNode(sound, {gain: 0.15});
        tone.connect(volume).connect(sound.destination);
        tone.start(sound.currentTime + start);
        tone.stop(sound.currentTime + start + 0.12);
    }
    setTimeout(() => sound.close(), 1000);
}

/** Says in the tab how many orders are new, and rings if there are more than before. */
function announce(count) {
    if (!Number.isInteger(count) || !wantsAlarm()) return;
    document.title = count ? `(${count}) ${pageTitle}` : pageTitle;
    if (count > arrived) ring();
    arrived = count;
}

for (const part of document.querySelectorAll("[data-live]")) {
    let shown = "";

    const renew = async () => {
        const counts = part.querySelector("[data-new]") && wantsAlarm();
        if (document.hidden && !counts) return;
        let fresh = null;
        try {
            const answer = await fetch(part.dataset.live, {
                headers: {"X-Reload": "1"}, // does not count as use of the session
            });
            // A redirect to the log-in page means that the session has ended.
            if (answer.ok && !answer.redirected) fresh = await answer.text();
        } catch {
            // There is no connection. The next turn tries again.
        }
        part.classList.toggle("desk-stale", fresh === null);
        part.title = fresh === null ? translated("Not up to date. Reload the page.") : "";
        if (fresh === null || fresh === shown) return;
        const made = new DOMParser().parseFromString(fresh, "text/html").body;
        announce(Number.parseInt(made.querySelector("[data-new]")?.dataset.new, 10));
        tell(made.querySelector("[data-news]")?.dataset.news);
        draw(made.querySelector("[data-chart]")?.dataset.chart);
        if (part.contains(document.activeElement)) return;
        if (made.querySelector("[data-ended]")) clearInterval(timer); // nothing more will change
        part.replaceChildren(...made.childNodes);
        shown = fresh;
    };

    const timer = setInterval(renew, Number(part.dataset.seconds) * 1000);
    document.addEventListener("visibilitychange", renew);
}

/** Writes the news where a screen reader announces it, but not the same text twice. */
function tell(news) {
    const place = document.querySelector(".desk-news a");
    if (place && news !== undefined && place.textContent !== news) place.textContent = news;
}

function draw(data) {
    const canvas = document.querySelector("canvas.chart");
    const chart = canvas && data !== undefined && Chart.getChart(canvas);
    if (chart && canvas.dataset.value !== data) {
        canvas.dataset.value = data;
        chart.data = JSON.parse(data);
        chart.update("none");
    }
}
