/** Copies a text; `false` when the browser did not allow it. */
export async function copyText(text: string): Promise<boolean> {
  try {
    // Absent where the console is served over plain HTTP, save on the viewer's own machine.
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

/** The way of old, which works over plain HTTP, too. */
function copySelected(text: string): boolean {
  const holder = document.createElement("textarea");
  holder.value = text;
  holder.className = "copy-holder";
  // Inside of the open dialog, which keeps the focus to itself.
  const dialogs = document.querySelectorAll("[role=dialog]");
  (dialogs[dialogs.length - 1] ?? document.body).append(holder);
  holder.select();
  try {
    // Nothing else copies where `navigator.clipboard` is absent.
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    return document.execCommand("copy");
  } finally {
    holder.remove();
  }
}
