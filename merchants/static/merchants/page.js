// The little that a page cannot do without a script.

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
