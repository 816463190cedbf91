// Making an element like another one, changing only what differs: focus, scrolling and what somebody types stay.

/**
 * @param {Element} now what stands on the page
 * @param {Element} then what it is to be like
 */
export function morph(now, then) {
  if (now.hasAttribute('data-keep')) {
    return;
  }
  attributes(now, then);
  state(now, then);
  children(now, then);
}

/** @param {Element} now @param {Element} then */
function attributes(now, then) {
  for (const { name } of [...now.attributes]) {
    // A fold that somebody opened stays open.
    if (!then.hasAttribute(name) && name !== 'open' && name !== 'aria-busy') {
      now.removeAttribute(name);
    }
  }
  for (const { name, value } of then.attributes) {
    if (now.getAttribute(name) !== value) {
      now.setAttribute(name, value);
    }
  }
}

/**
 * What a control holds is not among its attributes once somebody has touched it.
 * @param {Element} now @param {Element} then
 */
function state(now, then) {
  if (now instanceof HTMLInputElement && then instanceof HTMLInputElement) {
    if (now.type === 'radio') {
      now.checked = then.checked;
    } else if (now !== document.activeElement) {
      now.value = then.value;
    }
  } else if (now instanceof HTMLOptionElement && then instanceof HTMLOptionElement) {
    now.selected = then.selected;
  }
}

/** @param {Element} now @param {Element} then */
function children(now, then) {
  const old = [...now.childNodes];
  const wanted = [...then.childNodes];
  for (const [index, node] of wanted.entries()) {
    const there = old[index];
    if (!there) {
      now.append(document.adoptNode(node));
    } else if (isAlike(there, node)) {
      adjust(there, node);
    } else {
      there.replaceWith(document.adoptNode(node));
    }
  }
  for (const extra of old.slice(wanted.length)) {
    extra.remove();
  }
}

/** @param {Node} there @param {Node} node */
function isAlike(there, node) {
  const sameName = there.nodeType === node.nodeType && there.nodeName === node.nodeName;
  const [one, other] = [there, node].map((either) => (either instanceof Element ? either.id : ''));
  return sameName && one === other;
}

/** @param {Node} there @param {Node} node */
function adjust(there, node) {
  if (there instanceof Element && node instanceof Element) {
    morph(there, node);
  } else if (there.nodeValue !== node.nodeValue) {
    there.nodeValue = node.nodeValue;
  }
}
