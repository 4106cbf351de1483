// Shows the "Copy" buttons, which do not work without a script, and makes them work. Sends each form
// once: the response to the first click may show a key, and a second click would replace it. Sends
// the token of a secret link, which stands behind the # of the address.

const copied = document.createElement("span"); // tells screen readers
copied.className = "unseen";
copied.role = "status";
document.body.append(copied);
for (const button of document.querySelectorAll("[data-copy]")) {
    const source = document.getElementById(button.dataset.copy);
    if (source.ariaLabel) button.ariaLabel = `${button.textContent}: ${source.ariaLabel}`;
    button.hidden = false;
    button.addEventListener("click", async () => {
        try {
            await navigator.clipboard.writeText(source.innerText.trim());
        } catch {
            getSelection().selectAllChildren(source); // the reader copies it by a key
            return;
        }
        const before = button.textContent;
        button.textContent = button.dataset.copied;
        copied.textContent = button.dataset.copied;
        setTimeout(() => { button.textContent = before; copied.textContent = ""; }, 2000);
    });
}

for (const form of document.querySelectorAll("form[method=post]")) {
    let sent = false;
    form.addEventListener("submit", (event) => {
        if (sent) event.preventDefault();
        sent = true;
    });
    // The page came back from the browser's history.
    addEventListener("pageshow", () => { sent = false; });
}

const opened = document.querySelector("form[data-secret-link]");
if (opened) {
    const field = opened.elements.token;
    field.value = location.hash.slice(1) || field.value;
    history.replaceState(null, "", location.pathname); // the address bar forgets the token
    if (field.value) opened.requestSubmit();
}

// The list of time zones begins with that of the browser.
const zones = document.querySelector("select[name=time_zone]");
const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
zones?.prepend(...zones.querySelectorAll(`[value="${ownZone}"]`));

document.querySelector("[aria-invalid=true]")?.focus(); // the first field of a form that was refused

// On a phone, and where a table is wider than its frame, a row is a block, and each value stands
// behind its heading (style.css).
for (const table of document.querySelectorAll("table")) {
    const headings = [...table.querySelectorAll("thead th")].map(
        (one) => one.textContent.replaceAll("_", "_\u200b"), // where a long word may break
    );
    for (const cell of table.querySelectorAll("tbody td")) {
        cell.dataset.heading = headings[cell.cellIndex] ?? "";
    }
}
const phone = matchMedia("(max-width: 40rem)");
const fit = (frame) => {
    const { classList } = frame.querySelector("table");
    classList.remove("stacked");
    classList.toggle("stacked", phone.matches || frame.scrollWidth > frame.clientWidth);
};
const frames = new ResizeObserver((entries) => entries.forEach((one) => fit(one.target)));
for (const table of document.querySelectorAll("table")) {
    fit(table.parentElement);
    frames.observe(table.parentElement);
}

// The Tab key stops at a box only while it scrolls.
const boxes = new ResizeObserver((entries) => {
    for (const { target: box } of entries) {
        if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
        else box.removeAttribute("tabindex");
    }
});
for (const box of document.querySelectorAll("[role=region][tabindex]")) boxes.observe(box);

// Of a program in several languages, one is open: the first, or the one that the reader opened last
// on any page.
const programs = [...document.querySelectorAll("details[data-language]")];
const chosen = localStorage.getItem("language") ?? programs[0]?.dataset.language;
for (const program of programs) {
    program.open = program.dataset.language === chosen;
    program.querySelector("summary").addEventListener("click", () => {
        if (!program.open) localStorage.setItem("language", program.dataset.language); // it opens now
    });
}
