/** A list of any length: pages are read as one scrolls, and only the rows in view are drawn. */
import { Button, Card, Empty, Flex, Grid, Spin, Typography, type TableProps } from "antd";
import { useCallback, useEffect, useRef, useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Failure } from "./Failure";
import { DataTable } from "./DataTable";

/** What `$api.useInfiniteQuery` gives of a list. */
export interface Pages<Item> {
  data?: { pages: { items: Item[]; next?: string | null }[] };
  error: unknown;
  isPending: boolean;
  isFetching: boolean;
  isFetchingNextPage: boolean;
  isFetchNextPageError: boolean;
  hasNextPage: boolean;
  fetchNextPage: () => Promise<unknown>;
  refetch: () => Promise<unknown>;
}

/** For `$api.useInfiniteQuery`: how a list of the API goes on. */
export const BY_AFTER = {
  pageParamName: "after",
  // Not undefined: openapi-react-query would send 0 for that, which keys, calendars and lists by `before` do not take.
  initialPageParam: null as string | null,
  getNextPageParam: (page: { next?: string | null }) => page.next ?? undefined,
};

/** The same for lists that go backwards in time. */
export const BY_BEFORE = { ...BY_AFTER, pageParamName: "before" };

/** All items that have been read. */
export function itemsOf<Item>(pages: Pick<Pages<Item>, "data">): Item[] {
  return pages.data?.pages.flatMap((page) => page.items) ?? [];
}

/** For lists of what passes without a change: read again so often, ms. Who has scrolled far reads the list, not the clock. */
export function nearTop(period: number) {
  return ({ state: { data } }: { state: { data?: { pages: unknown[] } } }) => (data !== undefined && data.pages.length <= 2 ? period : false);
}

interface Properties<Item extends object> {
  /** Says what the list is, to those who hear the page. */
  label: string;
  pages: Pages<Item>;
  rowKey: (item: Item) => string;
  columns: NonNullable<TableProps<Item>["columns"]>;
  /** The same item on a narrow screen. */
  card: (item: Item) => ReactNode;
  /** Whether filters are set: an empty list then says so. */
  isFiltered?: boolean;
  /** What an empty list offers. */
  whenEmpty?: ReactNode;
  rowSelection?: TableProps<Item>["rowSelection"];
  expandable?: TableProps<Item>["expandable"];
  /** Instead of the items as they were read: with others among them. */
  items?: Item[];
}

/** Rows before the end at which more are asked for. */
const AHEAD = 20;
const ROW_PX = 47;
/** Width of the column that unfolds rows. */
const UNFOLD_PX = 48;
/** Pages in a row without a find after which nothing more is read by itself. */
const LOOK_PAGES = 10;
/** Cards on a narrow screen, at most. */
const MAX_CARDS = 1_000;
/** So far below the window the end of the cards asks for more, px. */
const AHEAD_PX = 800;

/** Reads on: `more` when the user asks for it, `onward` by itself, as long as that makes sense. */
function useReading<Item>(pages: Pages<Item>, found: number) {
  const { data, error, hasNextPage, isFetching, isFetchingNextPage, isFetchNextPageError, fetchNextPage, refetch } = pages;
  const read = data?.pages.length ?? 0;
  // How far it was when something was last found, or the user asked to search further.
  const [last, setLast] = useState({ found, read });
  if (last.found !== found || last.read > read) setLast({ found, read });
  const isTired = hasNextPage && read - last.read >= LOOK_PAGES;
  const isStuck = isTired || (error !== null && error !== undefined);
  const isWanted = useRef(false);
  const more = useCallback(() => {
    if (!hasNextPage || isFetchingNextPage) return;
    // A further page would break off what is being read again: it comes after that.
    isWanted.current = isFetching;
    if (!isFetching) void fetchNextPage();
  }, [hasNextPage, isFetching, isFetchingNextPage, fetchNextPage]);
  useEffect(() => {
    if (!isFetching && isWanted.current) more();
  }, [isFetching, more]);
  const onward = useCallback(() => {
    if (!isStuck) more();
  }, [isStuck, more]);
  // A page may hold nothing that matches and yet go on: the node looks for a bounded time.
  useEffect(() => {
    if (found < AHEAD) onward();
    // Each page read is a reason to look again, whether or not something was drawn in between.
  }, [found, read, onward]);
  return {
    onward,
    read,
    isTired,
    more: () => {
      setLast({ found, read });
      // Who was tired of looking goes on by itself now.
      if (!isTired || found >= AHEAD) more();
    },
    again: () => void (isFetchNextPageError ? fetchNextPage() : refetch()),
    /** Still reading by itself to fill the window. */
    isLooking: hasNextPage && found < AHEAD && !isStuck,
    /** What was read, whether it matches or not. */
    looked: itemsOf(pages).length,
  };
}

type Reading = ReturnType<typeof useReading>;

export function List<Item extends object>(properties: Properties<Item>) {
  const { pages, label, isFiltered = false } = properties;
  const { t } = useTranslation();
  const isWide = Grid.useBreakpoint().md !== false;
  const all = properties.items ?? itemsOf(pages);
  const reading = useReading(pages, all.length);
  const isFull = !isWide && all.length >= MAX_CARDS;
  const items = isFull ? all.slice(0, MAX_CARDS) : all;

  const failure = <Failure error={pages.error} again={reading.again} />;
  if (pages.error !== null && pages.error !== undefined && items.length === 0) return failure;
  // What was not looked through may hold some.
  const empty = !pages.isPending && !pages.hasNextPage && (
    <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={t(isFiltered ? "empty_filtered" : "empty")}>
      {!isFiltered && properties.whenEmpty}
    </Empty>
  );
  return (
    <section aria-label={label} aria-busy={pages.isPending || reading.isLooking}>
      {failure}
      {isWide ? <Wide {...properties} items={items} onward={reading.onward} empty={empty} /> : <Narrow {...properties} items={items} empty={empty} />}
      {isFull ? (
        <Typography.Text type="secondary">{t("many_cards", { count: MAX_CARDS })}</Typography.Text>
      ) : (
        <Foot pages={pages} reading={reading} count={items.length} followsPage={!isWide} />
      )}
    </section>
  );
}

interface FootProperties {
  pages: Pages<unknown>;
  reading: Reading;
  count: number;
  /** The page scrolls, not the list: where its end comes into view, more is read. */
  followsPage: boolean;
}

function Foot({ pages: { hasNextPage, isFetchingNextPage }, reading, count, followsPage }: FootProperties) {
  const { t } = useTranslation();
  const { onward, read, isLooking, isTired, looked } = reading;
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!followsPage || end.current === null) return undefined;
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && onward(), { rootMargin: `${AHEAD_PX}px` });
    observer.observe(end.current);
    return () => observer.disconnect();
      // An end that stays in view is reported again for each page.
  }, [followsPage, read, onward]);
  const words = () => {
    if (isLooking || isTired) return t(isTired ? "looked_through" : "still_looking", { count: looked });
    return count > 0 && t(hasNextPage ? "loaded_rows" : "end_of_list", { count });
  };
  return (
    <Flex ref={end} justify="center" align="center" gap="small" wrap className="list-foot">
      {isFetchingNextPage && <Spin size="small" />}
      <Typography.Text type="secondary" role={isTired ? "status" : undefined}>
        {words()}
      </Typography.Text>
      {hasNextPage && !isFetchingNextPage && (
        <Button size="small" onClick={reading.more}>
          {t(isTired ? "look_further" : "more")}
        </Button>
      )}
    </Flex>
  );
}

/** Height in px that is left below an element, at least 240: the list scrolls, the page does not. */
function useRoomBelow(): [(element: HTMLElement | null) => void, number] {
  const element = useRef<HTMLElement | null>(null);
  const [room, setRoom] = useState(480);
  const measure = useCallback(() => {
    if (element.current === null) return;
    const top = element.current.getBoundingClientRect().top + window.scrollY;
    setRoom(Math.max(240, Math.floor(window.innerHeight - top - 140)));
  }, []);
  useEffect(() => {
    // What stands above changes its height, too: filters wrap, banners come and go.
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    window.addEventListener("resize", measure);
    return () => {
      observer.disconnect();
      window.removeEventListener("resize", measure);
    };
  }, [measure]);
  const hold = useCallback(
    (found: HTMLElement | null) => {
      element.current = found;
      measure();
    },
    [measure],
  );
  return [hold, room];
}

type Inner<Item extends object> = Properties<Item> & { items: Item[]; empty: ReactNode };

function Wide<Item extends object>({ items, onward, empty, ...properties }: Inner<Item> & { onward: () => void }) {
  const [hold, room] = useRoomBelow();
  const width = properties.columns.reduce((sum, column) => sum + (typeof column.width === "number" ? column.width : 160), properties.expandable === undefined ? 0 : UNFOLD_PX);
  const onScroll = (event: React.UIEvent<HTMLDivElement>) => {
    const { scrollTop, clientHeight, scrollHeight } = event.currentTarget;
    if (scrollHeight - scrollTop - clientHeight < AHEAD * ROW_PX) onward();
  };
  // Few rows need no window of their own.
  const isLong = items.length * ROW_PX > room;
  return (
    <div ref={hold}>
      <DataTable<Item>
        size="middle"
        virtual={isLong}
        scroll={isLong ? { x: width, y: room } : { x: width }}
        onScroll={onScroll}
        pagination={false}
        loading={properties.pages.isPending}
        dataSource={items}
        rowKey={properties.rowKey}
        columns={properties.columns}
        rowSelection={properties.rowSelection}
        expandable={properties.expandable}
        locale={{ emptyText: empty }}
      />
    </div>
  );
}

function Narrow<Item extends object>({ items, empty, card, rowKey, pages }: Inner<Item>) {
  if (items.length === 0 && !pages.isPending) return empty;
  return (
    <Flex vertical gap="small" component="ul" className="cards">
      {items.map((item) => (
        <li key={rowKey(item)}>
          <Card size="small">{card(item)}</Card>
        </li>
      ))}
    </Flex>
  );
}
