/** A calendar in the editor, or an earlier version of it to look at. */
import { Alert, Button, Flex, Select } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useNavigate } from "react-router";
import { $api, client, Problem, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { Waiting } from "../../parts/Waiting";
import { specOf, VERSIONS_MAX, type CalendarSpec } from "../../lib/calendar";
import { useFilters } from "../../lib/search";
import { useLink } from "../../lib/tenant";
import { Confirm } from "../../parts/Confirm";
import { Failure } from "../../parts/Failure";
import { Moment } from "../../parts/Moment";
import { Page } from "../../parts/Page";
import { useAction } from "../../parts/useAction";
import { CalendarEditor } from "./CalendarEditor";
import { SpecView } from "./SpecView";
import { UsedBy, useTasksOf } from "./UsedBy";

interface Properties {
  tenant: string;
  name: string;
  /** An earlier version, as the address says it. */
  version: string | undefined;
}

export function OneCalendar({ tenant, name, version }: Properties) {
  const { t: own } = useTranslation("calendars");
  const link = useLink();
  const { may, mayWhole } = useSession();
  const seesTasks = may("tasks.read", { tenant });
  const users = useTasksOf(tenant, name, seesTasks);
  // The node refuses it then; the list below says which tasks are in the way.
  const isUsed = (users.data?.items.length ?? 0) > 0;
  const { data, error, isPending, refetch } = $api.useQuery("get", "/calendars/{tenant}/{name}", { params: { path: { tenant, name } } });
  const wanted = Number(version);
  const isOld = data !== undefined && Number.isInteger(wanted) && wanted > 0 && wanted !== data.version;
  // What is taken over of an earlier version, and how often that was done: each time the editor is reset.
  const [taken, setTaken] = useState<{ spec: CalendarSpec; count: number }>();
  const { set } = useFilters(["version"]);
  return (
    <Page
      title={name}
      subtitle={<Link to={link("/calendars")}>{own("calendars.all")}</Link>}
      actions={
        data !== undefined && (
          <>
            <Versions current={data.version} shown={isOld ? wanted : data.version} onChoose={(chosen) => set({ version: chosen === data.version ? undefined : String(chosen) })} />
            {!isUsed && mayWhole("calendars.delete", tenant) && <DeleteCalendar tenant={tenant} name={name} />}
          </>
        )
      }
    >
      {isPending && <Waiting />}
      {data === undefined && <Failure error={error} again={() => void refetch()} />}
      {isOld && (
        <OldVersion
          tenant={tenant}
          name={name}
          version={wanted}
          onTake={(spec) => {
            setTaken((last) => ({ spec, count: (last?.count ?? 0) + 1 }));
            set({ version: undefined });
          }}
        />
      )}
      {data !== undefined && !isOld && (
        <CalendarEditor key={taken?.count} tenant={tenant} name={name} base={specOf(data)} version={data.version} start={taken?.spec} />
      )}
      {data !== undefined && seesTasks && <UsedBy page={users.data} error={users.error} />}
    </Page>
  );
}

function Versions({ current, shown, onChoose }: { current: number; shown: number; onChoose: (version: number) => void }) {
  const { t: own } = useTranslation("calendars");
  const first = Math.max(1, current - VERSIONS_MAX + 1);
  const options = Array.from({ length: current - first + 1 }, (_, index) => current - index).map((version) => ({
    value: version,
    label: `${own("calendars.version")} ${version}${version === current ? ` (${own("editor.current")})` : ""}`,
  }));
  return <Select className="versions" aria-label={own("editor.versions")} title={own("editor.versions_help", { n: VERSIONS_MAX })} value={shown} options={options} onChange={onChoose} />;
}

interface OldProperties {
  tenant: string;
  name: string;
  version: number;
  onTake: (spec: CalendarSpec) => void;
}

function OldVersion({ tenant, name, version, onTake }: OldProperties) {
  const { t: own } = useTranslation("calendars");
  const { mayWhole } = useSession();
  const { data, error, isPending, refetch } = $api.useQuery("get", "/calendars/{tenant}/{name}", { params: { path: { tenant, name }, query: { version } } });
  const unknown: unknown = error;
  if (isPending) return <Waiting />;
  if (unknown instanceof Problem && unknown.status === 404) return <Alert type="info" showIcon title={own("editor.gone_version")} />;
  if (data === undefined) return <Failure error={unknown} again={() => void refetch()} />;
  return <Old calendar={data} onTake={mayWhole("calendars.edit", tenant) ? onTake : undefined} />;
}

function Old({ calendar, onTake }: { calendar: Schema<"CalendarVersion">; onTake: ((spec: CalendarSpec) => void) | undefined }) {
  const { t: own } = useTranslation("calendars");
  const spec = specOf(calendar);
  return (
    <Flex vertical gap="middle">
      <Alert
        type="info"
        showIcon
        title={
          <>
            {own("editor.old_title", { version: calendar.version })} · <Moment at={calendar.updated_at} />
          </>
        }
        description={own("editor.old_text")}
        action={onTake && <Button onClick={() => onTake(spec)}>{own("editor.take_over")}</Button>}
      />
      <SpecView spec={spec} />
    </Flex>
  );
}

function DeleteCalendar({ tenant, name }: { tenant: string; name: string }) {
  const { t: own } = useTranslation("calendars");
  const { run } = useAction();
  const link = useLink();
  const navigate = useNavigate();
  const remove = () =>
    run(() => client.DELETE("/calendars/{tenant}/{name}", { params: { path: { tenant, name } } }), {
      done: own("editor.deleted"),
      then: () => void navigate(link("/calendars")),
    });
  return (
    <Confirm
      label={own("editor.delete")}
      question={own("editor.delete_question", { name })}
      consequence={own("editor.delete_consequence")}
      onConfirm={remove}
    />
  );
}
