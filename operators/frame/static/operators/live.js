/* Reloads the parts of a page that have a data-live address, while the page is visible.
 *
 * The rest of the page stays as it is: selections, typed text and open menus. A part that has the
 * keyboard focus is not replaced. A screen reader announces what is new. */
"use strict";

for (const part of document.querySelectorAll("[data-live]")) {
    let shown = "";

    const renew = async () => {
        if (document.hidden) return;
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
