// Sends the token of a secret link, which stands behind the # of the address.

"use strict";

const form = document.querySelector("form[data-secret-link]");
if (form && location.hash) {
    form.elements.token.value = location.hash.slice(1);
    history.replaceState(null, "", location.pathname); // the address bar forgets the token
    form.requestSubmit();
}
