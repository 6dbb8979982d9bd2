/** The window on an output: follows its end until the user scrolls up. */
import { VerticalAlignBottomOutlined } from "@ant-design/icons";
import { Button, Flex, Switch, Typography } from "antd";
import { useEffect, useRef, useState, type ReactNode, type UIEvent } from "react";
import { useTranslation } from "react-i18next";
import type { Output } from "../../lib/feed";
import type { Hit } from "../../lib/output";
import { size } from "../../lib/size";
import { Failure } from "../../parts/Failure";
import { SearchBox, useSearch } from "./OutputSearch";
import { OutputState } from "./OutputState";
import { nameOf, OutputText } from "./OutputText";
import { useAsk } from "./useAsk";

/** So near to its end the text counts as being at it, px. */
const NEAR_PX = 24;

/** Keeps a scrolling element at its end while `follows`; scrolling up ends that, scrolling to the end begins it again. */
function useFollowing(follows: boolean, setFollows: (follows: boolean) => void) {
  const box = useRef<HTMLDivElement>(null);
  const text = useRef<HTMLDivElement>(null);
  const lastTop = useRef(0);
  useEffect(() => {
    const toEnd = () => {
      if (follows && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
    };
    toEnd();
    // Text comes, and what comes into view turns out higher than it was thought to be.
    const observer = new ResizeObserver(toEnd);
    if (text.current !== null) observer.observe(text.current);
    return () => observer.disconnect();
  }, [follows]);
  const onScroll = ({ currentTarget: { scrollTop, scrollHeight, clientHeight } }: UIEvent<HTMLDivElement>) => {
    const isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    if (isAtEnd) setFollows(true);
    else if (scrollTop < lastTop.current) setFollows(false);
    lastTop.current = scrollTop;
  };
  return { box, text, onScroll };
}

/** What stands before the text when it does not begin at the beginning. */
function Before({ output, earlier }: { output: Output; earlier: () => Promise<unknown> }) {
  const { t } = useTranslation("logs");
  const { busy, error, ask } = useAsk();
  const { from, hasDropped } = output.held;
  if (from === 0) return null;
  return (
    <>
      <Flex gap="small" align="center" wrap>
        <Typography.Text type="secondary">{t(hasDropped ? "output.dropped" : "output.not_read", { size: size(from) })}</Typography.Text>
        {output.isSeekable && (
          <Button size="small" loading={busy} onClick={() => void ask(earlier)}>
            {t("output.earlier")}
          </Button>
        )}
      </Flex>
      <Failure error={error} />
    </>
  );
}

interface Properties {
  output: Output;
  /** Says what the text is, to those who hear the page. */
  label: string;
  follows: boolean;
  setFollows: (follows: boolean) => void;
  earlier: () => Promise<unknown>;
  /** Reads the end again. */
  toEnd: () => void;
  /** Further buttons. */
  children?: ReactNode;
}

/** Says why there is no text, or shows it. */
export function OutputView(properties: Properties) {
  const { output, toEnd } = properties;
  if (output.held.next === 0 && output.state.is !== "following") return <OutputState output={output} again={toEnd} />;
  return <Opened {...properties} />;
}

function Opened({ output, label, follows, setFollows, earlier, toEnd, children }: Properties) {
  const { t } = useTranslation("logs");
  const [wraps, setWraps] = useState(true);
  const { box, text, onScroll } = useFollowing(follows, setFollows);
  const show = (hit: Hit) => {
    setFollows(false);
    box.current?.querySelector(`[data-line="${nameOf(hit)}"]`)?.scrollIntoView({ block: "center" });
  };
  const search = useSearch(output.held, show);
  const readEarlier = () => {
    setFollows(false);
    return earlier();
  };
  const goToEnd = () => {
    setFollows(true);
    if (output.isBehind) toEnd();
  };
  return (
    <>
      <Flex gap="middle" wrap align="center">
        <label>
          <Switch size="small" checked={follows} onChange={(on) => (on ? goToEnd() : setFollows(false))} /> {t("output.follow")}
        </label>
        <label>
          <Switch size="small" checked={wraps} onChange={setWraps} /> {t("output.wrap")}
        </label>
        <SearchBox {...search} />
        {children}
      </Flex>
      <OutputState output={output} again={toEnd} />
      <Before output={output} earlier={readEarlier} />
      <div className="log-output-frame">
        {/* It scrolls, so the keyboard must get there. */}
        {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
        <div ref={box} className={`raw log-output${wraps ? "" : " log-output-long"}`} tabIndex={0} role="region" aria-label={label} onScroll={onScroll}>
          <div ref={text}>
            <OutputText held={output.held} wanted={search.wanted} current={search.current} />
          </div>
        </div>
        {!follows && (
          <Button className="log-to-end" icon={<VerticalAlignBottomOutlined aria-hidden />} onClick={goToEnd}>
            {t("output.to_end")}
          </Button>
        )}
      </div>
      {output.isBehind && <Typography.Text type="secondary">{t("output.later_dropped")}</Typography.Text>}
    </>
  );
}
