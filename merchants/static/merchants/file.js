// Follows a file that a worker builds, and saves it. Each of its parts comes in a request of its own.
"use strict";

const SECONDS = 3;
const TRIES = 6;
const place = document.querySelector("[data-file]");
const cancel = document.querySelector("[data-cancel]");

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

async function follow() {
    while (place.querySelector("[data-unfinished]")) {
        await pause(SECONDS);
        try {
            const answer = await fetch(location.href, {
                headers: {"X-Reload": "1"}, // does not count as use of the session
            });
            // The file was deleted, or a right to it was lost. The page says so.
            if (answer.status === 404) return location.reload();
            // A redirect to the log-in page means that the session has ended.
            if (!answer.ok || answer.redirected) continue;
            const page = new DOMParser().parseFromString(await answer.text(), "text/html");
            place.replaceChildren(...page.querySelector("[data-file]").childNodes);
            cancel.hidden = page.querySelector("[data-cancel]").hidden;
        } catch {
            // There is no connection. The next turn tries again.
        }
    }
}

async function readPart(address) {
    for (let attempt = 1; ; attempt += 1) {
        const answer = await fetch(address).catch(() => null);
        if (answer?.ok && !answer.redirected) return answer.blob();
        const isLost = answer && answer.status < 500 && answer.status !== 429;
        if (isLost || attempt === TRIES) throw new Error("The part cannot be downloaded.");
        await pause(2 ** attempt);
    }
}

async function save(link) {
    const count = Number(link.dataset.parts);
    const meter = place.querySelector("progress");
    const failed = place.querySelector("[data-failed]");
    link.removeAttribute("data-parts"); // until this download has ended
    meter.hidden = false;
    failed.hidden = true;
    try {
        const parts = [];
        for (let number = 0; number < count; number += 1) {
            parts.push(await readPart(`${link.dataset.base}${number}/`));
            meter.value = parts.length / count;
        }
        const whole = document.createElement("a");
        whole.href = URL.createObjectURL(new Blob(parts));
        whole.download = link.download;
        whole.click();
        setTimeout(() => URL.revokeObjectURL(whole.href), 60_000);
    } catch {
        failed.hidden = false;
    }
    meter.hidden = true;
    link.dataset.parts = count;
}

place.addEventListener("click", (event) => {
    const link = event.target.closest("[data-base]");
    if (!link) return;
    event.preventDefault();
    if (link.dataset.parts) save(link);
});
follow();
