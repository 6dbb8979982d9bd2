/** What executors of xxl-job know a task by, and what is different for it there. Nothing where it has to do with none. */
import { Card, Flex } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { $api, type Schema } from "../../api/client";
import { readOrigin } from "../../lib/imports";
import { useOrigin } from "../../lib/origin";
import { useLink } from "../../lib/tenant";
import { librariesOf, libraryOf, notesOf } from "../../lib/xxljob";
import { useTaskMay } from "../tasks/useTaskMay";

/** More are counted, not shown. */
const SHOWN = 5;
const EXECUTORS = 500;

export function PlainTask({ task }: { task: Schema<"Task"> }) {
  const { t } = useTranslation("xxljob");
  const may = useTaskMay(task.tenant, task.app);
  const origin = useOrigin(task.tenant, task.id);
  const { data } = $api.useQuery("get", "/executors", { params: { query: { tenant: task.tenant, app: task.app, limit: EXECUTORS } } }, { enabled: may("executors.read") });
  const plain = (data?.items ?? []).filter((executor) => executor.plain);
  if (plain.length === 0 && origin === undefined) return null;
  const notes = notesOf(task, librariesOf(plain));
  return (
    <Card size="small" title={<h2 className="card-title">{t(plain.length > 0 ? "task.title" : "task.imported_title")}</h2>}>
      <Flex vertical gap="small">
        <dl className="facts">
          <dt>{t("task.handler")}</dt>
          <dd className="mono">{task.handler}</dd>
          {(plain.length > 0 || origin?.number != null) && (
            <>
              <dt>{t("task.number")}</dt>
              <dd>{origin?.number == null ? <span className="soft">{t("task.number_unknown")}</span> : <span className="mono">{origin.number}</span>}</dd>
            </>
          )}
          {origin !== undefined && <Origin tenant={task.tenant} {...readOrigin(origin.origin)} />}
          {plain.length > 0 && (
            <>
              <dt>{t("task.executors")}</dt>
              <dd>
                <Addresses executors={plain} />
              </dd>
            </>
          )}
        </dl>
        {notes.length > 0 && (
          <ul className="bulk-names">
            {notes.map((note) => (
              <li key={note}>{t(`task.note.${note}`)}</li>
            ))}
          </ul>
        )}
      </Flex>
    </Card>
  );
}

function Origin({ tenant, source, there }: { tenant: string; source: string; there: string }) {
  const { t } = useTranslation("xxljob");
  const link = useLink();
  return (
    <>
      <dt>{t("task.origin")}</dt>
      <dd>
        <Link to={link("/imports", { tenant })}>{t("task.origin_of", { source, there })}</Link>
      </dd>
    </>
  );
}

function Addresses({ executors }: { executors: readonly Schema<"Executor">[] }) {
  const { t } = useTranslation("xxljob");
  const link = useLink();
  return (
    <Flex vertical gap={2}>
      {executors.slice(0, SHOWN).map(({ id, address, tenant, app, version }) => (
        <Flex key={id} gap="small" wrap>
          <Link to={link("/executors", { tenant, app, executor: id })}>{address}</Link>
          <span className="soft">{t(`library.${libraryOf(version)}`)}</span>
        </Flex>
      ))}
      {executors.length > SHOWN && <span className="soft">{t("executors.more", { n: executors.length - SHOWN })}</span>}
    </Flex>
  );
}
