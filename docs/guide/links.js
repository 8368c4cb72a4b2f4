"use strict";
// mdBook turns each relative link to a Markdown file into one to a page. Files outside of the book have no pages.
for (const link of document.querySelectorAll('main a[href^="../"]')) {
  link.setAttribute("href", link.getAttribute("href").replace(/\.html(?=#|$)/, ".md"));
}
