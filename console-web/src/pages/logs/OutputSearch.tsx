/** Search within the output that the page holds. */
import { DownOutlined, UpOutlined } from "@ant-design/icons";
import { Button, Flex, Input, Typography } from "antd";
import { useDeferredValue, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { find, type Held, type Hit } from "../../lib/output";

interface Search {
  text: string;
  setText: (text: string) => void;
  hits: Hit[];
  /** Which hit it is at, from 0. */
  at: number;
  go: (step: number) => void;
  /** What is marked in the text. */
  wanted: string;
  current: Hit | undefined;
}

/** The search; `show` brings a hit into view. */
export function useSearch(held: Held, show: (hit: Hit) => void): Search {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState<number>();
  const wanted = useDeferredValue(text);
  const hits = useMemo(() => find(held, wanted), [held, wanted]);
  const at = Math.min(chosen ?? 0, Math.max(0, hits.length - 1));
  const go = (step: number) => {
    // The first step goes to the first hit, or to the last one.
    const from = chosen === undefined ? (step > 0 ? -1 : 0) : at;
    const next = (from + step + hits.length) % Math.max(1, hits.length);
    const hit = hits[next];
    if (hit === undefined) return;
    setChosen(next);
    show(hit);
  };
  const change = (changed: string) => {
    setText(changed);
    setChosen(undefined);
  };
  return { text, setText: change, hits, at, go, wanted, current: chosen === undefined ? undefined : hits[at] };
}

export function SearchBox({ text, setText, hits, at, go }: Search) {
  const { t } = useTranslation("logs");
  return (
    <Flex gap={4} align="center">
      <Input
        className="log-find"
        aria-label={t("output.find")}
        placeholder={t("output.find")}
        allowClear
        value={text}
        onChange={(event) => setText(event.target.value)}
        onPressEnter={(event) => go(event.shiftKey ? -1 : 1)}
      />
      {text !== "" && (
        <>
          <Typography.Text type="secondary" role="status">
            {hits.length === 0 ? t("output.not_found") : t("output.found", { at: at + 1, count: hits.length })}
          </Typography.Text>
          <Button icon={<UpOutlined aria-hidden />} aria-label={t("output.previous_hit")} onClick={() => go(-1)} />
          <Button icon={<DownOutlined aria-hidden />} aria-label={t("output.next_hit")} onClick={() => go(1)} />
        </>
      )}
    </Flex>
  );
}
