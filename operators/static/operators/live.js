/* Renews the parts of a page that say where they come from (data-live), while somebody looks at it.
 *
 * Nothing else of the page is touched: what is selected, typed or opened stays. A part that holds
 * the keyboard's focus waits. What is new is said in words to those who do not see the numbers. */
"use strict";

for (const part of document.querySelectorAll("[data-live]")) {
    let shown = "";

    const renew = async () => {
        if (document.hidden) return;
        let fresh = null;
        try {
            const answer = await fetch(part.dataset.live);
            // A redirect leads to the log-in page: the session has ended.
            if (answer.ok && !answer.redirected) fresh = await answer.text();
        } catch {
            // No connection: the next turn tries again.
        }
        part.classList.toggle("desk-stale", fresh === null);
        part.title = fresh === null ? "Not up to date: reload the page" : "";
        if (fresh === null || fresh === shown) return;
        const made = new DOMParser().parseFromString(fresh, "text/html").body;
        tell(made.querySelector("[data-news]")?.dataset.news);
        draw(made.querySelector("[data-chart]")?.dataset.chart);
        if (part.contains(document.activeElement)) return;
        part.replaceChildren(...made.childNodes);
        shown = fresh;
    };

    setInterval(renew, Number(part.dataset.seconds) * 1000);
    document.addEventListener("visibilitychange", renew);
}

/** Says it where a screen reader listens; the same words are not said twice. */
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
