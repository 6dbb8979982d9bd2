/** Parts of a page of which one is shown: as tabs, or, where there is little room, as a choice. */
import { Flex, Grid, Select, Tabs } from "antd";
import type { ReactNode } from "react";

interface Properties {
  /** Says what is chosen, to those who hear the page. */
  label: string;
  items: { key: string; label: string; children: ReactNode }[];
  active: string;
  onChange: (key: string) => void;
}

export function Sections({ label, items, active, onChange }: Properties) {
  const isWide = Grid.useBreakpoint().md !== false;
  if (isWide) return <Tabs destroyOnHidden activeKey={active} onChange={onChange} items={items} />;
  return (
    <Flex vertical gap="middle">
      <Select aria-label={label} value={active} onChange={onChange} options={items.map(({ key, label: text }) => ({ value: key, label: text }))} />
      {items.find(({ key }) => key === active)?.children}
    </Flex>
  );
}
