/** The maintenance windows of a tenant that run or are planned. */
import { Button, Flex, Typography, type TableProps } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { $api, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { windowState, type WindowState } from "../../lib/maintenance";
import { useNow } from "../../lib/now";
import type { Tone } from "../../lib/states";
import { useTenant } from "../../lib/tenant";
import { BY_AFTER, List } from "../../parts/List";
import { Moment } from "../../parts/Moment";
import { Page } from "../../parts/Page";
import { Word } from "../../parts/Tags";
import { TenantFirst } from "../../parts/TenantFirst";
import { EndWindow } from "./EndWindow";
import { NewWindow } from "./NewWindow";

type Window = Schema<"MaintenanceWindow">;

const TONES: Record<WindowState, Tone> = { running: "odd", planned: "open", over: "idle" };

export default function Maintenance() {
  const { t } = useTranslation();
  const { t: own } = useTranslation("calendars");
  const { mayWhole } = useSession();
  const { tenant } = useTenant();
  const [isNew, setIsNew] = useState(false);
  const mayAdd = tenant !== undefined && mayWhole("maintenance.create", tenant);
  const add = mayAdd && (
    <Button type="primary" onClick={() => setIsNew(true)}>
      {own("maintenance.begin")}
    </Button>
  );
  return (
    <Page title={t("pages.maintenance")} subtitle={own("maintenance.subtitle")} actions={add}>
      <TenantFirst why={own("maintenance.choose_tenant")} permission="maintenance.read">
        {(chosen) => (
          <>
            <Typography.Text type="secondary">{own("maintenance.rests")}</Typography.Text>
            <Windows key={chosen} tenant={chosen} />
            {isNew && <NewWindow tenant={chosen} onClose={() => setIsNew(false)} />}
          </>
        )}
      </TenantFirst>
    </Page>
  );
}

function State({ window }: { window: Window }) {
  const { t: own } = useTranslation("calendars");
  const state = windowState(window, useNow(1_000));
  return <Word tone={TONES[state]}>{own(`maintenance.${state}`)}</Word>;
}

/** When it begins or, while it runs, when it ends: what one waits for. */
function Next({ window }: { window: Window }) {
  const { t: own } = useTranslation("calendars");
  const isPlanned = windowState(window, useNow(1_000)) === "planned";
  return (
    <>
      {`${own(isPlanned ? "maintenance.starts" : "maintenance.left")} `}
      <Moment at={isPlanned ? window.starts_at : window.ends_at} relative />
    </>
  );
}

function Windows({ tenant }: { tenant: string }) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("calendars");
  const pages = $api.useInfiniteQuery("get", "/tenants/{tenant}/maintenance", { params: { path: { tenant } } }, BY_AFTER);
  const columns: TableProps<Window>["columns"] = [
    { title: own("maintenance.state"), key: "state", width: 90, render: (_, window) => <State window={window} /> },
    { title: own("maintenance.from"), key: "from", width: 165, render: (_, window) => <Moment at={window.starts_at} /> },
    { title: own("maintenance.until"), key: "until", width: 165, render: (_, window) => <Moment at={window.ends_at} /> },
    { title: "", key: "next", width: 150, render: (_, window) => <Next window={window} /> },
    { title: own("maintenance.action"), key: "action", width: 120, render: (_, window) => own(`maintenance.actions.${window.action}`) },
    { title: own("maintenance.note"), dataIndex: "note", width: 190 },
    { title: t("actions"), key: "actions", width: 110, render: (_, window) => <EndWindow tenant={tenant} window={window} /> },
  ];
  return (
    <List<Window>
      label={t("pages.maintenance")}
      pages={pages}
      rowKey={(window) => window.id}
      columns={columns}
      whenEmpty={<p>{own("maintenance.empty")}</p>}
      card={(window) => (
        <Flex vertical gap={4} align="start">
          <Flex gap="small" wrap>
            <State window={window} />
            <Next window={window} />
          </Flex>
          <span>
            <Moment at={window.starts_at} exactness="minute" /> – <Moment at={window.ends_at} exactness="minute" />
          </span>
          <span>{`${own("maintenance.action")}: ${own(`maintenance.actions.${window.action}`)}`}</span>
          {window.note !== "" && <span>{window.note}</span>}
          <EndWindow tenant={tenant} window={window} />
        </Flex>
      )}
    />
  );
}
