/** Makes a task, or edits one. */
import { Spin } from "antd";
import { useTranslation } from "react-i18next";
import { useParams, useSearchParams } from "react-router";
import { $api } from "../../api/client";
import { DEFAULTS, definitionOf } from "../../lib/definition";
import { useTenant } from "../../lib/tenant";
import { viewerZone } from "../../lib/time";
import { Failure } from "../../parts/Failure";
import { Page } from "../../parts/Page";
import { EditorForm } from "./EditorForm";

export default function TaskEditor() {
  const { id } = useParams();
  const [search] = useSearchParams();
  const from = search.get("from") ?? undefined;
  if (id !== undefined) return <Edit key={id} id={id} />;
  return from === undefined ? <Create app={search.get("app") ?? ""} /> : <Copy key={from} id={from} />;
}

function Create({ app }: { app: string }) {
  const { t } = useTranslation("tasks");
  const { tenant = "" } = useTenant();
  return (
    <Page title={t("editor.new_title")}>
      <EditorForm tenant={tenant} app={app} first={{ ...DEFAULTS, schedule: "cron", cron: "0 0 2 * * ?", time_zone: viewerZone() }} />
    </Page>
  );
}

/** The task as it was when the page was opened: what is typed must not change by itself. */
function useTaskOnce(id: string) {
  return $api.useQuery("get", "/tasks/{id}", { params: { path: { id } } });
}

function Copy({ id }: { id: string }) {
  const { t } = useTranslation("tasks");
  const { data, error, refetch } = useTaskOnce(id);
  return (
    <Page title={t("editor.new_title")}>
      <Failure error={error} again={() => void refetch()} />
      {data === undefined ? <Spin spinning={error === null} /> : <EditorForm tenant={data.tenant} app={data.app} first={{ ...definitionOf(data), name: "" }} />}
    </Page>
  );
}

function Edit({ id }: { id: string }) {
  const { t } = useTranslation("tasks");
  const { data, error, refetch } = useTaskOnce(id);
  return (
    <Page title={data === undefined ? t("editor.loading") : t("editor.edit_title", { name: data.name })} subtitle={data && `${data.tenant} / ${data.app}`}>
      <Failure error={error} again={() => void refetch()} />
      {data === undefined ? <Spin spinning={error === null} /> : <EditorForm tenant={data.tenant} app={data.app} first={definitionOf(data)} task={data} />}
    </Page>
  );
}
