/** A table whose scrolled areas can be reached, and so scrolled, by keyboard. */
import { Table, type TableProps } from "antd";
import { useEffect, useRef } from "react";

const AREAS = ".ant-table-content, .ant-table-body, .ant-table-tbody-virtual-holder";

export function DataTable<Item extends object>(properties: TableProps<Item>) {
  const holder = useRef<HTMLDivElement>(null);
  // What overflows changes with rows and widths; looking costs next to nothing.
  useEffect(() => {
    for (const area of holder.current?.querySelectorAll<HTMLElement>(AREAS) ?? []) {
      const scrolls = area.scrollWidth > area.clientWidth || area.scrollHeight > area.clientHeight;
      if (scrolls) area.tabIndex = 0;
      else area.removeAttribute("tabindex");
    }
  });
  return (
    <div ref={holder}>
      <Table<Item> {...properties} />
    </div>
  );
}
