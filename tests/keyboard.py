"""Tab through a page in a real browser."""

from playwright.sync_api import Page

# What reacts to a click and is visible. A click beside an open panel closes it: Escape does, too.
# Marks the elements, notes each that gets the focus, and returns how often Tab must be pressed to
# come round.
BEGIN = """() => {
    const visible = (each) => each.checkVisibility({visibilityProperty: true}) && each.offsetWidth;
    [...document.querySelectorAll('a, button, input, select, textarea, summary, [x-on\\\\:click]')]
        .filter((each) => visible(each) && !each.disabled && each.type !== 'hidden'
            && !each.closest('[inert], .select2-hidden-accessible')
            && each.id !== 'changelist-filter-close')
        .forEach((each, number) => each.dataset.control = number);
    document.addEventListener('focusin', (event) => event.target.dataset.reached = '1');
    if (document.activeElement !== document.body) document.activeElement.dataset.reached = '1';
    const parts = document.querySelectorAll('[type^=date], [type=time]').length * 6; // of a date
    return [...document.querySelectorAll('*')].filter(
        (each) => each.tabIndex >= 0 && visible(each)).length + parts + 5;
}"""
MISSED = """() => [...document.querySelectorAll('[data-control]:not([data-reached])')]
    .filter((each) => each.type !== 'radio' && !each.querySelector('[data-reached]'))
    .map((each) => each.outerHTML.slice(0, 200))"""


def unreached(page: Page) -> list[str]:
    """The controls of the open page that Tab does not reach."""
    for _ in range(page.evaluate(BEGIN)):
        page.keyboard.press("Tab")
    found: list[str] = page.evaluate(MISSED)
    return found
