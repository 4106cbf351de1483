// Gives names and roles to what the theme leaves without, for people who use a screen reader, and
// lets the keyboard reach what the theme makes for the mouse only.

"use strict";

// A text of a script in the reader's language (templates/admin/script_texts.html).
const translated = (text) =>
    [...(document.getElementById("script-texts")?.content.children ?? [])]
        .find((each) => each.dataset.text === text)?.textContent ?? text;

const name = (element, text) => element.setAttribute("aria-label", translated(text.trim()));

const role = (selector, value, label) => {
    const element = document.querySelector(selector);
    element?.setAttribute("role", value);
    if (element && label) {
        name(element, label);
    }
};

// The theme's switches: the variable that one turns, its name (null: its text, without the avatar),
// and what it opens.
const SWITCHES = [
    ["openUserLinks", null, "nav"],
    ["sidebarMobileOpen", "Sections", "#nav-sidebar"],
    ["sidebarDesktopOpen", "Sidebar", null],
    ["navigationOpen", null, null],
    ["filterOpen", "Filters", "#changelist-filter"],
    ["openRelatedWidgetWrapper", "Change or add the chosen row", "nav"],
];
const FOCUSABLE = "a[href], button, input:not([type=hidden]), select, [role=button], [role=combobox]";

const focusInto = (element) =>
    [...(element?.querySelectorAll(FOCUSABLE) ?? [])].find((each) => each.offsetParent)?.focus();

// Makes a button of an element that only listens to clicks: Enter and Space press it.
const makeButton = (control) => {
    control.setAttribute("role", "button");
    if (control.matches(".material-symbols-outlined")) {
        control.removeAttribute("aria-hidden");
        control.innerHTML = `<span aria-hidden="true">${control.textContent}</span>`;
    }
    control.tabIndex = 0;
    control.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            control.click();
        }
    });
};

// The keyboard leads into what a switch opens. Escape closes that and leads back.
const lead = (control, variable, opens) => {
    const isOpen = () => Boolean(window.Alpine.evaluate(control, variable));
    const popup = () => control.parentElement.querySelector(opens) ?? document.querySelector(opens);
    window.Alpine.effect(() => control.setAttribute("aria-expanded", isOpen()));
    control.addEventListener("keydown", (event) => {
        if (opens && (event.key === "Enter" || event.key === " ")) {
            // After the transition, unless the person went on meanwhile. The next frame begins it,
            // which takes a while on a slow computer.
            requestAnimationFrame(() => setTimeout(() => {
                if (isOpen() && document.activeElement === control) {
                    focusInto(popup());
                }
            }, 200));
        }
    });
    document.addEventListener("keydown", (event) => {
        const isInside = event.target === control || popup()?.contains(event.target);
        if (event.key === "Escape" && opens && isOpen() && isInside) {
            control.click();
            control.focus();
        }
    });
};

const BACKDROP = "#changelist-filter-close"; // a click beside the filters; Escape does the same

// What is in a heading becomes the button: a heading may not be one.
const pressed = (element) => {
    if (!element.matches("h1, h2, h3")) {
        return element;
    }
    const inner = document.createElement("span");
    inner.className = "flex flex-row grow items-center";
    inner.append(...element.childNodes);
    element.append(inner);
    return inner;
};

const makeButtons = () => {
    for (const element of document.querySelectorAll("[x-on\\:click]")) {
        if (element.matches(`a[href], button, input, [role=button], ${BACKDROP}`)) {
            continue;
        }
        const control = pressed(element);
        makeButton(control);
        const action = element.getAttribute("x-on:click");
        for (const [variable, label, opens] of SWITCHES) {
            if (action.startsWith(`${variable} = `)) {
                lead(control, variable, opens);
                if (label) {
                    name(control, label);
                } else {
                    control.firstElementChild.setAttribute("aria-hidden", "true");
                }
            }
        }
    }
};

// The logo leads to the overview, and has the name of the service.
const nameLogo = () => {
    const brand = document.querySelector("#site-name a");
    const logo = brand && document.querySelector(
        `#nav-sidebar-inner a[href="${brand.getAttribute("href")}"]:has(> span:only-child)`);
    logo?.setAttribute("aria-label", brand.textContent.trim());
};

// The name of an icon is its text, which would be read aloud. It names a button without a text.
const hideIcons = () => {
    for (const icon of document.querySelectorAll(".material-symbols-outlined:not([role])")) {
        const holder = icon.closest("a, button");
        const text = icon.textContent.trim();
        if (holder?.textContent.trim() === text && !holder.title && !holder.ariaLabel) {
            name(holder, text.charAt(0).toUpperCase() + text.slice(1).replaceAll("_", " "));
        }
        icon.setAttribute("aria-hidden", "true");
    }
};

// The cells of a table of forms have no labels: the heads of their columns name them.
const nameCells = (table) => {
    const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
    for (const row of table.querySelectorAll("tbody tr")) {
        [...row.cells].forEach((cell, column) => {
            for (const input of cell.querySelectorAll("input:not([type=hidden]), select, textarea")) {
                if (!input.labels?.length && heads[column]) {
                    name(input, heads[column]);
                }
            }
        });
    }
    for (const head of table.querySelectorAll("thead th")) {
        if (!head.textContent.trim()) {
            head.innerHTML = '<span class="unseen">Actions</span>';
        }
    }
};

// On a phone, each cell of a list shows the label of its column, which begins with a capital letter.
const capitalise = () => {
    for (const cell of document.querySelectorAll("[data-label]")) {
        const label = cell.dataset.label;
        cell.dataset.label = label.charAt(0).toUpperCase() + label.slice(1);
    }
};

const nameAll = () => {
    capitalise();
    makeButtons();
    nameLogo();
    hideIcons();
    role("#main", "main");
    role("body.login #page", "main");
    role("#nav-sidebar", "navigation", "Sections");
    role("#tabs-items", "navigation", "Quick views");
    document.querySelectorAll(".tabular table, .formset-wrapper table").forEach(nameCells);
    const labelOf = (select) => select?.labels?.[0]?.textContent ?? select?.getAttribute("aria-label");
    for (const field of document.querySelectorAll(".select2-search--inline .select2-search__field")) {
        const label = labelOf(field.closest(".select2-container").previousElementSibling);
        if (label) {
            name(field, label);
        }
    }
    for (const text of document.querySelectorAll(".select2-selection__rendered")) {
        const label = labelOf(document.getElementById(text.id.replace(/^select2-|-container$/g, "")));
        if (label) {
            text.parentElement.removeAttribute("aria-labelledby");
            name(text.parentElement, label);
            name(text, label);
        }
    }
    for (const hint of document.querySelectorAll(".help-tooltip[aria-label]")) {
        hint.setAttribute("role", "img");
    }
    // Regions need names that differ.
    document.querySelectorAll('[aria-label="scrollable content"]').forEach((region, number) => {
        name(region, region.closest("#nav-sidebar") ? "List of sections" : `${translated("Table")} ${number}`);
    });
};

// Django's boxes that choose rows have texts that its own translation lacks.
const translateBoxes = () => {
    const fromDjango = window.gettext;
    if (fromDjango) {
        window.gettext = (text) => (translated(text) === text ? fromDjango(text) : translated(text));
    }
};

// On a phone, a list leaves out what is empty (admin.css).
const markEmpty = () => {
    for (const cell of document.querySelectorAll("#result_list .data-row > [data-label]")) {
        cell.classList.toggle("is-empty", cell.textContent.trim() === "-");
    }
};

// The theme writes the name of a chosen file into the first text field near it. Only its own field
// of a file, inside a label, has one for that. A plain field shows the name itself.
const leavePlainFiles = () => {
    for (const file of document.querySelectorAll("input[type=file]")) {
        file.hasChangeListener = !file.closest("label"); // the theme then adds no listener
    }
};

document.addEventListener("DOMContentLoaded", leavePlainFiles);
document.addEventListener("DOMContentLoaded", translateBoxes); // before Django makes the boxes
document.addEventListener("DOMContentLoaded", markEmpty);
window.addEventListener("load", () => setTimeout(nameAll)); // after the theme's own scripts
document.addEventListener("formset:added", nameAll);
document.addEventListener("htmx:load", hideIcons);
