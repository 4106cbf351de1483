/* Keyboard shortcuts. An element with data-key is pressed by that key; "?" lists them.
 *
 * Everything works without them. They do nothing while a person types, and can be turned off, which
 * the browser remembers: programs that read a voice send single letters. */
"use strict";

(() => {
    const OFF = "shortcuts-off";
    const dialog = document.createElement("dialog");
    dialog.className = "shortcuts";

    const isOff = () => {
        try {
            return localStorage.getItem(OFF) === "1";
        } catch {
            return false;
        }
    };
    const visible = () =>
        [...document.querySelectorAll("[data-key]")].filter((each) => each.checkVisibility());
    const control = (each) => (each.matches("a, button, input") ? each : each.querySelector("a, button"));
    const words = (each) =>
        each.dataset.keyName ?? control(each).innerText.replace(/^\w+\n/, "").trim();

    const list = () => {
        dialog.setAttribute("aria-label", translated("Keyboard shortcuts"));
        const rows = visible().map((each) => [each.dataset.key, words(each)]);
        rows.push(["?", translated("Show or hide this list")]);
        dialog.innerHTML = "<h2></h2><dl></dl><p></p><button></button> <button></button>";
        dialog.querySelector("h2").textContent = translated("Keyboard shortcuts");
        for (const [key, text] of rows) {
            const term = document.createElement("dt");
            term.append(Object.assign(document.createElement("kbd"), {textContent: key}));
            dialog.querySelector("dl").append(
                term, Object.assign(document.createElement("dd"), {textContent: text}));
        }
        dialog.querySelector("p").textContent = isOff() ? translated("They are off, except for this list.") : "";
        const [turn, close] = dialog.querySelectorAll("button");
        turn.textContent = translated(isOff() ? "Turn on" : "Turn off");
        close.textContent = translated("Close");
        turn.addEventListener("click", () => {
            localStorage.setItem(OFF, isOff() ? "0" : "1");
            list();
        });
        close.addEventListener("click", () => dialog.close());
    };

    document.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
        if (event.target.closest("input, textarea, select, [contenteditable], [role=combobox]")) return;
        if (event.key === "?") {
            if (dialog.open) return dialog.close();
            if (!dialog.isConnected) document.body.append(dialog);
            list();
            return dialog.showModal();
        }
        if (dialog.open || isOff()) return;
        const found = visible().find((each) => each.dataset.key === event.key);
        if (!found) return;
        event.preventDefault();
        if (found.matches("input")) found.focus();
        else control(found).click();
    });
})();
