/** Filters of a list: beside each other where there is room, behind a button where they would push the list off the screen. */
import { FilterOutlined } from "@ant-design/icons";
import { Button, Flex, Grid } from "antd";
import { useId, useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

interface Properties {
  /** How many of them are set. */
  count: number;
  clear: () => void;
  /** They stay in the page while they are folded: what is typed is not lost. */
  children: ReactNode;
}

export function FilterFold({ count, clear, children }: Properties) {
  const { t } = useTranslation();
  const id = useId();
  const [isOpen, setIsOpen] = useState(false);
  const isWide = Grid.useBreakpoint().md !== false;
  if (isWide) return children;
  return (
    <Flex vertical gap="small">
      <Flex gap="small" wrap>
        <Button icon={<FilterOutlined aria-hidden />} aria-expanded={isOpen} aria-controls={id} onClick={() => setIsOpen(!isOpen)}>
          {count === 0 ? t("filters") : t("filters_set", { count })}
        </Button>
        {count > 0 && !isOpen && <Button onClick={clear}>{t("clear_filters")}</Button>}
      </Flex>
      <div id={id} hidden={!isOpen}>
        {children}
      </div>
    </Flex>
  );
}
