/** Stands in for the browser's streams and tabs; the test says what comes. */

/** An `EventSource`. */
export class Source extends EventTarget {
  static all: Source[] = [];
  isClosed = false;

  constructor(readonly url: string) {
    super();
    Source.all.push(this);
  }

  /** The newest of them. */
  static last(): Source {
    const last = Source.all.at(-1);
    if (last === undefined) throw new Error("no stream was opened");
    return last;
  }

  /** Those that hold a connection. */
  static open(): Source[] {
    return Source.all.filter((source) => !source.isClosed);
  }

  close() {
    this.isClosed = true;
  }

  say(name: string, data: object) {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }

  fail() {
    this.dispatchEvent(new Event("error"));
  }
}

/** Hides the page, or shows it. */
export function show(state: DocumentVisibilityState): void {
  Object.defineProperty(document, "visibilityState", { configurable: true, get: () => state });
  document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
}
