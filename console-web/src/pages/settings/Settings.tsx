/** What the node goes by. It cannot be changed here. */
import { Flex, Input, Typography, type TableProps } from "antd";
import { useTranslation } from "react-i18next";
import { $api, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { findSettings } from "../../lib/nodes";
import { useFilters } from "../../lib/search";
import { BY_AFTER, itemsOf, List } from "../../parts/List";
import { Page } from "../../parts/Page";

type Setting = Schema<"Setting">;

function Value({ of }: { of: string }) {
  const { t: own } = useTranslation("nodes");
  return of === "" ? <span className="soft">{own("settings.empty_value")}</span> : <span className="mono setting-value">{of}</span>;
}

export default function Settings() {
  const { t } = useTranslation();
  const { t: own } = useTranslation("nodes");
  const { may } = useSession();
  const { filters, set, isFiltered } = useFilters(["search"]);
  const pages = $api.useInfiniteQuery("get", "/settings", { params: { query: { limit: 500 } } }, BY_AFTER);
  const nodes = $api.useQuery("get", "/nodes", {}, { enabled: may("nodes.read") });
  const name = nodes.data?.items.find((node) => node.id === nodes.data.this.id)?.name;
  const columns: TableProps<Setting>["columns"] = [
    { title: own("settings.name"), key: "name", width: 360, render: (_, setting) => <span className="mono">{setting.name}</span> },
    { title: own("settings.value"), key: "value", width: 480, render: (_, setting) => <Value of={setting.value} /> },
  ];
  return (
    <Page title={t("pages.settings")} subtitle={name === undefined ? own("settings.subtitle_plain") : own("settings.subtitle", { name })}>
      <Typography.Text type="secondary">{`${own("settings.hidden_help")} ${own("settings.other_nodes")}`}</Typography.Text>
      <Flex>
        <Input
          className="filter"
          allowClear
          value={filters.search ?? ""}
          placeholder={own("settings.search")}
          aria-label={own("settings.search")}
          onChange={(event) => set({ search: event.target.value })}
        />
      </Flex>
      <List<Setting>
        label={t("pages.settings")}
        pages={pages}
        items={findSettings(itemsOf(pages), filters.search ?? "")}
        rowKey={(setting) => setting.name}
        columns={columns}
        isFiltered={isFiltered}
        card={(setting) => (
          <>
            <div className="mono">{setting.name}</div>
            <Value of={setting.value} />
          </>
        )}
      />
    </Page>
  );
}
