// Shows the "Copy" buttons, which do not work without a script, and makes them work.

for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
        const source = document.getElementById(button.dataset.copy);
        await navigator.clipboard.writeText(source.textContent.trim());
        const before = button.textContent;
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = before; }, 2000);
    });
}
