/* What can be scrolled sideways can be scrolled with the keyboard. `document$` is the
 * theme's: it tells when a page is there. */
document$.subscribe(() => {
    for (const one of document.querySelectorAll("pre > code, .md-typeset__scrollwrap"))
        one.tabIndex = 0;
});
