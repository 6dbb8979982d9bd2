/** How a test finds on a page what a person would look for: by the texts that the console has. */
import type { Locator, Page } from "playwright-core";

/** A text of the console with its places filled in. */
export function say(text: string, values: Record<string, string | number> = {}): string {
  return text.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`nothing is given for {{${name}}} of "${text}"`);
    return String(value);
  });
}

/** A text of the console as a pattern: anything may stand in its places, and around it. */
export function like(text: string): RegExp {
  const parts = text.split(/\{\{\w+\}\}/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return new RegExp(parts.join(".+"));
}

/** Chooses an option of a select. */
export async function choose(page: Page, select: Locator, option: string): Promise<void> {
  await select.click();
  await page.locator(".ant-select-dropdown:visible .ant-select-item-option").getByText(option, { exact: true }).click();
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
