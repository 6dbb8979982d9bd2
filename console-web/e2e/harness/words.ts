/** How a test finds on a page what a person would look for: by the texts that the console has. */
import type { Locator, Page } from "playwright-core";
import en from "../../src/i18n/en";

/** A text of the console with its places filled in. */
export function say(text: string, values: Record<string, string | number> = {}): string {
  return text.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`nothing is given for {{${name}}} of "${text}"`);
    return String(value);
  });
}

/** A text of the console as a pattern: anything may stand in the places that are given no value, and around it. */
export function like(text: string, values: Record<string, string | number> = {}): RegExp {
  const parts = text.split(/\{\{(\w+)\}\}/).map((part, index) => (index % 2 === 0 ? part : values[part]));
  return new RegExp(parts.map((part) => (part === undefined ? ".+" : String(part).replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))).join(""));
}

/** Chooses an option of a select. */
export async function choose(page: Page, select: Locator, option: string): Promise<void> {
  await select.click();
  const open = page.locator(".ant-select-dropdown:visible");
  await open.locator(".ant-select-item-option").getByText(option, { exact: true }).click();
  // One that takes several options stays open.
  if (await select.evaluate((input) => input.closest(".ant-select-multiple") !== null)) await select.blur();
  // What is still closing would take the next click.
  await open.waitFor({ state: "hidden" });
}

/** The dialog or drawer of that title. */
export function dialog(page: Page, title: string | RegExp): Locator {
  return page.getByRole("dialog", { name: title });
}

/** What the page says in passing: that something is done. */
export function told(page: Page, text: string): Locator {
  return page.locator(".ant-message").getByText(text);
}

/** The frame of a form's field: its label, the control and what is said about it. */
export function item(field: Locator): Locator {
  return field.page().locator(".ant-form-item").filter({ has: field }).last();
}

/** What is wrong with a field, as it stands beside it. */
export function wrong(field: Locator): Locator {
  return item(field).locator(".ant-form-item-explain-error");
}

/** Reads the secret that is shown once, says that it is kept, and waits until it is gone. */
export async function keepSecret(page: Page, title: string): Promise<string> {
  const shown = dialog(page, title);
  const secret = await shown.getByRole("textbox", { name: title }).inputValue();
  await shown.getByRole("checkbox", { name: en.people.secret.kept }).check();
  await shown.getByRole("button", { name: en.people.secret.close }).click();
  await shown.waitFor({ state: "hidden" });
  return secret;
}

/** Clicks a button that asks first, and confirms. */
export async function confirm(page: Page, button: Locator, question: string, label: string): Promise<void> {
  await button.click();
  const asked = dialog(page, question);
  await asked.getByRole("button", { name: label, exact: true }).click();
  await asked.waitFor({ state: "hidden" });
}
