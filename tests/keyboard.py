"""Whether Tab reaches each control of a page in a real browser."""

from playwright.sync_api import Page

# Marks what reacts to a click and is visible, and gives the focus to each element that Tab stops
# at. An element is reached if it takes the focus and keeps it, and if no script stops its Tab key.
# A click beside an open panel closes it, as Escape does. Returns how many elements were reached.
FOCUS_ALL = """() => {
    const visible = (each) => each.checkVisibility({visibilityProperty: true}) && each.offsetWidth;
    [...document.querySelectorAll('a, button, input, select, textarea, summary, [x-on\\\\:click]')]
        .filter((each) => visible(each) && !each.disabled && each.type !== 'hidden'
            && !each.closest('[inert], .select2-hidden-accessible')
            && each.id !== 'changelist-filter-close')
        .forEach((each, number) => each.dataset.control = number);
    const tab = {key: 'Tab', code: 'Tab', keyCode: 9, bubbles: true, cancelable: true};
    const stops = [...document.querySelectorAll('*')].filter((each) => {
        if (each.tabIndex < 0 || !visible(each)) return false;
        each.focus();
        return document.activeElement === each
            && each.dispatchEvent(new KeyboardEvent('keydown', tab));
    });
    stops.forEach((each, number) => each.dataset.reached = number);
    return stops.length;
}"""
MISSED = """() => [...document.querySelectorAll('[data-control]:not([data-reached])')]
    .filter((each) => each.type !== 'radio' && !each.querySelector('[data-reached]'))
    .map((each) => each.outerHTML.slice(0, 200))"""
# Whether the focus left an element. Tab goes through the parts of a date before it leaves.
LEFT = """(number) => document.activeElement.dataset.reached !== String(number)
    || /^(date|datetime-local|time)$/.test(document.activeElement.type)"""
SAMPLES = 5  # keys pressed on a page: one takes longer than all of FOCUS_ALL


def unreached(page: Page) -> list[str]:
    """The controls of the open page that Tab does not reach."""
    reached = page.evaluate(FOCUS_ALL)
    found: list[str] = page.evaluate(MISSED)
    for number in range(0, reached, reached // SAMPLES + 1):
        page.evaluate(
            "(number) => document.querySelector(`[data-reached='${number}']`).focus()", number
        )
        page.keyboard.press("Tab")
        if not page.evaluate(LEFT, number):
            found.append(f"Tab does not leave element {number}")
    return found
