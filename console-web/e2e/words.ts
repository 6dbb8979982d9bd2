/** Texts and controls as a person finds them. */
import type { Locator, Page } from "playwright-core";

/** A text of the console with its gaps filled. */
export function say(text: string, values: Record<string, string | number> = {}): string {
  return text.replace(/\{\{(\w+)\}\}/g, (_, name: string) => String(values[name] ?? ""));
}

/** A text as a pattern; each gap that has no value holds anything. */
export function like(text: string, values: Record<string, string | number> = {}): RegExp {
  const parts = text.split(/\{\{(\w+)\}\}/).map((part, index) => (index % 2 === 0 ? part : (values[part] ?? undefined)));
  return new RegExp(parts.map((part) => (part === undefined ? ".+" : String(part).replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))).join(""));
}

/** Chooses an option of a list that drops down. */
export async function choose(page: Page | Locator, name: string, option: string): Promise<void> {
  const box = page.getByRole("combobox", { name, exact: true });
  await box.click();
  const root = "page" in page ? page.page() : page;
  const open = root.locator(".ant-select-dropdown:not(.ant-select-dropdown-hidden)");
  await open.locator(".ant-select-item-option").getByText(option, { exact: true }).click();
  // What is still closing would take the next click.
  await open.waitFor({ state: "detached" }).catch(() => open.waitFor({ state: "hidden" }));
}

/** The dialog that is open, by its question. */
export function dialog(page: Page, name: string | RegExp): Locator {
  return page.getByRole("dialog", { name });
}
