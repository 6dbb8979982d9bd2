/** Starts or stops many tasks, and says which did not follow, and why. */
import { Alert, App, Button, Flex, Modal, Progress, Typography } from "antd";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { client, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { forAll, type Outcome } from "../../lib/bulk";
import { Confirm } from "../../parts/Confirm";
import { wordsOf } from "../../parts/Failure";

type Task = Schema<"Task">;
type Verb = "start" | "stop";

interface Properties {
  tasks: Task[];
  onClear: () => void;
}

export function BulkActions({ tasks, onClear }: Properties) {
  const { t } = useTranslation("tasks");
  const { may } = useSession();
  const { busy, behind, outcomes, act, forget } = useBulk();
  // Which apps are theirs the node knows; what it refuses is in the result.
  const allowed = (verb: Verb) => tasks.some(({ tenant }) => may(`tasks.${verb}`, { tenant }));
  return (
    <Flex gap="small" align="center" wrap className="bulk" role="group" aria-label={t("bulk.label")}>
      <strong>{t("bulk.selected", { count: tasks.length })}</strong>
      {(["start", "stop"] as const).filter(allowed).map((verb) => (
        <Confirm
          key={verb}
          label={t(`${verb}.button`)}
          question={t(`bulk.${verb}_question`, { count: tasks.length })}
          consequence={<Typography.Text>{t(`${verb}.consequence`)}</Typography.Text>}
          danger={false}
          button={{ size: "small", disabled: busy }}
          onConfirm={() => act(verb, tasks)}
        />
      ))}
      <Button size="small" type="link" onClick={onClear}>
        {t("bulk.clear")}
      </Button>
      {busy && <Progress percent={Math.round((behind / tasks.length) * 100)} size="small" className="bulk-progress" aria-label={t("bulk.going_on")} />}
      <Failed outcomes={outcomes} onClose={forget} />
    </Flex>
  );
}

function useBulk() {
  const { t } = useTranslation("tasks");
  const { message } = App.useApp();
  const queries = useQueryClient();
  const [behind, setBehind] = useState<number>();
  const [outcomes, setOutcomes] = useState<Outcome<Task>[]>([]);
  const act = async (verb: Verb, tasks: Task[]) => {
    setBehind(0);
    const told = await forAll(
      tasks,
      ({ id }) => client.POST(verb === "start" ? "/tasks/{id}/start" : "/tasks/{id}/stop", { params: { path: { id } } }),
      setBehind,
    );
    await queries.invalidateQueries();
    setBehind(undefined);
    const done = told.filter(({ isDone }) => isDone).length;
    if (done > 0) message.success(t(`bulk.${verb}_done`, { count: done }));
    setOutcomes(told);
    return true;
  };
  return { busy: behind !== undefined, behind: behind ?? 0, outcomes, act, forget: () => setOutcomes([]) };
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
