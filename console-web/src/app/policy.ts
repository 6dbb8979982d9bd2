/**
 * Styles under the page's Content-Security-Policy: style elements need the nonce. Ant Design makes some without it (the
 * lock on scrolling behind a dialog, the measure of scroll bars). What is injected as text does not come by here.
 */

/** The nonce that the node wrote into the page. */
export function nonce(): string | undefined {
  const given = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content;
  return given === undefined || given.startsWith("%") ? undefined : given;
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
    return element;
  };
}
