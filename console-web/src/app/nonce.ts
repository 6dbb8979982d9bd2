/** The nonce that the node wrote into the page: style elements without it are not obeyed. */

/** The nonce; `undefined` where no node wrote one (a development server). */
export const nonce: string | undefined = (() => {
  const given = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content;
  return given === undefined || given.startsWith("%") ? undefined : given;
})();

/**
 * Gives the nonce to every style element that a script makes. Ant Design does so itself, but for
 * the one by which it measures scroll bars. What is injected as text does not come by here.
 */
export function signStyleElements(): void {
  if (nonce === undefined) return;
  /* eslint-disable @typescript-eslint/no-deprecated -- what is deprecated is one overload, for tags that nobody uses */
  const create = document.createElement.bind(document);
  document.createElement = (name: string, options?: ElementCreationOptions) => {
    const element = create(name, options);
    if (element instanceof HTMLStyleElement) element.nonce = nonce;
    return element;
  };
}
