/** A stream of server-sent events that can be trusted to say when it is dead. */

/** What is done with what is heard. */
interface Hearing {
  /** By the name of the event: its data as JSON, which is nothing where it has none. */
  events: Record<string, (data: never) => void>;
  opened?: () => void;
  /** The connection is gone; the stream is closed. */
  lost: () => void;
  /** Nothing was heard for `silence`: a connection can be dead without an end. The stream is closed. */
  silent: () => void;
}

/** Listens at `url` until the function that it gives is called. `silence` in ms. */
export function listenAt(url: string, silence: number, { events, opened, lost, silent }: Hearing): () => void {
  const source = new EventSource(url);
  let timer: number | undefined;
  const stop = () => {
    window.clearTimeout(timer);
    source.close();
  };
  const ended = (then: () => void) => () => {
    stop();
    then();
  };
  const heard = () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(ended(silent), silence);
  };
  heard();
  source.addEventListener("error", ended(lost));
  if (opened !== undefined) source.addEventListener("open", opened);
  for (const [name, hear] of Object.entries(events)) {
    source.addEventListener(name, (event: MessageEvent<string | undefined>) => {
      heard();
      hear((event.data === undefined || event.data === "" ? undefined : JSON.parse(event.data)) as never);
    });
  }
  return stop;
}
