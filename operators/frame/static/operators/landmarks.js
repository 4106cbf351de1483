// Gives names and roles to what the theme leaves without, for people who use a screen reader.

"use strict";

const name = (element, text) => element.setAttribute("aria-label", text.trim());

const role = (selector, value, label) => {
    const element = document.querySelector(selector);
    element?.setAttribute("role", value);
    if (element && label) {
        name(element, label);
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
    role("#main", "main");
    role("#nav-sidebar", "navigation", "Sections");
    document.querySelectorAll(".tabular table, .formset-wrapper table").forEach(nameCells);
    for (const text of document.querySelectorAll(".select2-selection__rendered")) {
        const select = document.getElementById(text.id.replace(/^select2-|-container$/g, ""));
        const label = select?.labels?.[0]?.textContent ?? select?.getAttribute("aria-label");
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
        name(region, region.closest("#nav-sidebar") ? "List of sections" : `Table ${number}`);
    });
};

window.addEventListener("load", () => setTimeout(nameAll)); // after the theme's own scripts
document.addEventListener("formset:added", nameAll);
