/** The text of an output: in blocks, of which the browser lays out only those in view. */
import { memo } from "react";
import { partsOf, restOf, type Block, type Held, type Hit, type Row } from "../../lib/output";

function Text({ text, wanted }: { text: string; wanted: string }) {
  const parts = partsOf(text, wanted);
  // Every second part is what was looked for.
  return <>{parts.map((part, index) => (index % 2 === 1 ? <mark key={index}>{part}</mark> : part))}</>;
}

function Line({ row, wanted, name, isCurrent }: { row: Row; wanted: string; name?: string; isCurrent: boolean }) {
  const kind = [row.isMore ? "log-line-more" : "", isCurrent ? "log-line-current" : ""].filter((word) => word !== "").join(" ");
  return (
    <div data-line={name} className={kind === "" ? undefined : kind}>
      {/* An empty line has its height all the same. */}
      {row.text === "" ? "\n" : <Text text={row.text} wanted={wanted} />}
    </div>
  );
}

const Lines = memo(function Lines({ block, wanted, current }: { block: Block; wanted: string; current: number | undefined }) {
  return (
    <div className="log-block" style={{ containIntrinsicBlockSize: `auto ${block.rows.length * 1.5}em` }}>
      {block.rows.map((row, index) => (
        <Line key={index} row={row} wanted={wanted} name={nameOf({ block: block.from, row: index })} isCurrent={index === current} />
      ))}
    </div>
  );
});

/** What a line is called in the document. */
export function nameOf(hit: Hit): string {
  return `${hit.block}-${hit.row}`;
}

/** All that is held. `wanted` is marked; `current` is the line that the search is at. */
export function OutputText({ held, wanted, current }: { held: Held; wanted: string; current: Hit | undefined }) {
  const rest = restOf(held);
  return (
    <>
      {held.blocks.map((block) => (
        <Lines key={block.from} block={block} wanted={wanted} current={current?.block === block.from ? current.row : undefined} />
      ))}
      {rest !== undefined && <Line row={rest} wanted={wanted} isCurrent={false} />}
    </>
  );
}
