/** What a person does with dialogs and fields. */
import type { Locator, Page } from "playwright-core";
import en from "../src/i18n/en";

/** A text of the console with its values put in. */
export function filled(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{\{(\w+)\}\}/g, (_, name: string) => String(values[name] ?? ""));
}

export function dialog(page: Page, title: string): Locator {
  return page.getByRole("dialog", { name: title });
}

/** Chooses an option of a field. */
export async function choose(page: Page, field: Locator, option: string): Promise<void> {
  await field.click();
  await page.locator(".ant-select-dropdown").filter({ visible: true }).locator(".ant-select-item-option").filter({ hasText: option }).first().click();
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
