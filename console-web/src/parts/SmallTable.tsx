/** A few rows as a plain table, for pages that must not load a large one for them. */
import type { ReactNode } from "react";

interface Properties {
  columns: { title: string; isNumber?: boolean }[];
  rows: { key: string; cells: ReactNode[] }[];
}

export function SmallTable({ columns, rows }: Properties) {
  const classOf = (index: number) => (columns[index]?.isNumber === true ? "number small-table-number" : undefined);
  return (
    <table className="small-table">
      <thead>
        <tr>
          {columns.map(({ title }, index) => (
            <th key={title} scope="col" className={classOf(index)}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ key, cells }) => (
          <tr key={key}>
            {cells.map((cell, index) => (
              <td key={columns[index]?.title} className={classOf(index)}>
                {cell}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
