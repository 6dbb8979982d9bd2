/** Starts or stops many tasks, and says which did not follow, and why. */
import { Alert, App, Button, Flex, Modal, Progress, Typography } from "antd";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { client, type Schema } from "../../api/client";
import { renewed } from "../../api/renew";
import { forAll, type Outcome } from "../../lib/bulk";
import { Confirm } from "../../parts/Confirm";
import { wordsOf } from "../../parts/Failure";
import { useTasksMay } from "./useTaskMay";

type Task = Schema<"Task">;
type Verb = "start" | "stop";

/** Most tasks that the question names. */
const NAMED = 10;

interface Properties {
  tasks: Task[];
  onClear: () => void;
}

export function BulkActions({ tasks, onClear }: Properties) {
  const { t } = useTranslation("tasks");
  const allowed = useTasksMay();
  const { busy, behind, all, outcomes, act, forget } = useBulk();
  const verbs = (["start", "stop"] as const).map((verb) => ({ verb, of: tasks.filter((task) => allowed(`tasks.${verb}`, task)) }));
  return (
    <Flex gap="small" align="center" wrap className="bulk" role="group" aria-label={t("bulk.label")}>
      <strong>{t("bulk.selected", { count: tasks.length })}</strong>
      {verbs
        .filter(({ of }) => of.length > 0)
        .map(({ verb, of }) => (
          <Confirm
            key={verb}
            label={t(`${verb}.button`)}
            question={t(`bulk.${verb}_question`, { count: of.length })}
            consequence={<Typography.Text>{t(`${verb}.consequence`)}</Typography.Text>}
            danger={false}
            button={{ size: "small", disabled: busy }}
            onConfirm={() => act(verb, of)}
          >
            <Names tasks={of} />
          </Confirm>
        ))}
      <Button size="small" type="link" onClick={onClear}>
        {t("bulk.clear")}
      </Button>
      {busy && <Progress percent={Math.round((behind / all) * 100)} size="small" className="bulk-progress" aria-label={t("bulk.going_on")} />}
      <Failed outcomes={outcomes} onClose={forget} />
    </Flex>
  );
}

/** What would follow, by name. */
function Names({ tasks }: { tasks: Task[] }) {
  const { t } = useTranslation("tasks");
  return (
    <ul aria-label={t("bulk.label")} className="bulk-names">
      {tasks.slice(0, NAMED).map(({ id, tenant, app, name }) => (
        <li key={id}>
          <bdi>{`${tenant} / ${app} / ${name}`}</bdi>
        </li>
      ))}
      {tasks.length > NAMED && <li>{t("bulk.more", { count: tasks.length - NAMED })}</li>}
    </ul>
  );
}

function useBulk() {
  const { t } = useTranslation("tasks");
  const { message } = App.useApp();
  const queries = useQueryClient();
  const [behind, setBehind] = useState<number>();
  const [all, setAll] = useState(1);
  const [outcomes, setOutcomes] = useState<Outcome<Task>[]>([]);
  const act = async (verb: Verb, tasks: Task[]) => {
    setBehind(0);
    setAll(tasks.length);
    const told = await forAll(
      tasks,
      ({ id }) => client.POST(verb === "start" ? "/tasks/{id}/start" : "/tasks/{id}/stop", { params: { path: { id } } }),
      setBehind,
    );
    await renewed(queries);
    setBehind(undefined);
    const done = told.filter(({ isDone }) => isDone).length;
    if (done > 0) message.success(t(`bulk.${verb}_done`, { count: done }));
    setOutcomes(told);
    return true;
  };
  return { busy: behind !== undefined, behind: behind ?? 0, all, outcomes, act, forget: () => setOutcomes([]) };
}

/** Those that failed, with the reason of each; nothing when all went well. */
function Failed({ outcomes, onClose }: { outcomes: Outcome<Task>[]; onClose: () => void }) {
  const { t: common } = useTranslation();
  const { t } = useTranslation("tasks");
  const failed = outcomes.filter((outcome) => !outcome.isDone);
  return (
    <Modal open={failed.length > 0} title={t("bulk.failed", { count: failed.length, all: outcomes.length })} footer={<Button onClick={onClose}>{common("close")}</Button>} onCancel={onClose}>
      <Flex vertical gap="small">
        {failed.map(({ item, error }) => {
          const { title, detail, help } = wordsOf(error, common);
          return <Alert key={item.id} type="error" title={`${item.tenant} / ${item.app} / ${item.name}`} description={[title, detail, help].filter((text) => text !== "").join(". ")} />;
        })}
      </Flex>
    </Modal>
  );
}
