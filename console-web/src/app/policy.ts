/**
 * Styles under the page's Content-Security-Policy. Ant Design makes some of its style elements without the nonce (the lock
 * on scrolling behind a dialog, the measure of scroll bars), and sets `style` attributes (text fields that grow): the
 * browser obeys neither. Here they get the nonce, or go the way that needs none.
 */

/** The nonce that the node wrote into the page. */
export function nonce(): string | undefined {
  const given = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content;
  return given === undefined || given.startsWith("%") ? undefined : given;
}

/** Sets the attribute; a style by the element's own rules. */
function setAttribute(this: HTMLElement, name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
}

interface Maker {
  createElement: (name: string, options?: ElementCreationOptions) => HTMLElement;
}

/** From now on, elements that are made here keep the policy. */
export function keepPolicy(page: Maker, given: string | undefined): void {
  if (given === undefined) return;
  const make = page.createElement.bind(page);
  page.createElement = (name, options) => {
    const element = make(name, options);
    if (name === "style") element.nonce = given;
    if (name === "textarea") element.setAttribute = setAttribute;
    return element;
  };
}
