/* Sends a large file in parts, and then its form without the file.
 *
 * The service keeps each part sealed. A part whose request fails is sent again. A small file goes
 * with its form, as it does without this script. */
"use strict";

const TRIES = 6;
const form = document.querySelector("form:has([data-parts])");
const file = form.querySelector("[data-parts]");
const meter = document.querySelector("[data-meter]");
let isSending = false;

form.addEventListener("submit", async (event) => {
    const chosen = file.files[0];
    if (!chosen || chosen.size <= Number(file.dataset.partBytes)) return;
    event.preventDefault();
    if (isSending) return;
    isSending = true;
    meter.hidden = false;
    try {
        const upload = await sendParts(chosen);
        form.elements.upload.value = upload;
        form.elements.upload_name.value = chosen.name;
        form.elements.upload_size.value = chosen.size;
        file.disabled = true; // it has arrived
        form.submit();
    } catch (problem) {
        say(`${translated(problem.message)} ${translated("Try again.")}`);
        window.dispatchEvent(new Event("pageshow")); // the form may be sent again
    }
    isSending = false;
});

async function sendParts(chosen) {
    const upload = newId();
    const size = Number(file.dataset.partBytes);
    for (let start = 0, number = 0; start < chosen.size; start += size, number += 1) {
        const part = new FormData();
        part.append("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
        part.append("upload", upload);
        part.append("number", number);
        part.append("file", chosen.slice(start, start + size), "part");
        await send(part);
        const done = Math.min(start + size, chosen.size) / chosen.size;
        meter.querySelector("progress").value = done;
        say(`${translated("Uploading")}: ${Math.floor(100 * done)} %`);
    }
    return upload;
}

async function send(part) {
    for (let attempt = 1; ; attempt += 1) {
        let answer = null;
        try {
            answer = await fetch(file.dataset.parts, {method: "POST", body: part});
        } catch {
            // There is no connection. The next attempt may have one.
        }
        if (answer?.status === 204) return;
        if (answer && answer.status < 500 && answer.status !== 429) {
            throw new Error("The upload was refused. You may have been logged out.");
        }
        if (attempt === TRIES) throw new Error("The upload was interrupted.");
        await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** attempt));
    }
}

function newId() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function say(text) {
    meter.querySelector("[data-said]").textContent = text;
}
