/** The tasks whose end makes this one run. */
import { DeleteOutlined, PlusOutlined } from "@ant-design/icons";
import { AutoComplete, Button, Flex, Select } from "antd";
import { useTranslation } from "react-i18next";
import { $api, type Schema } from "../../api/client";
import { OUTCOMES } from "../../lib/definition";
import type { Draft } from "./draft";
import { ChoiceRadios, Labelled, YesNoField } from "./fields";
import { useChoiceWords } from "./FieldValue";

type Parent = Schema<"ParentLink">;

/** The API takes no more. */
const MAX_PARENTS = 32;

/** Names by which the task can call others of its tenant. */
function useNames({ tenant, app, values }: Draft): string[] {
  const { data } = $api.useQuery("get", "/tasks", { params: { query: { tenant, limit: 500 } } }, { enabled: tenant !== "", staleTime: 60_000 });
  return (data?.items ?? []).filter((task) => task.app !== app || task.name !== values.name).map((task) => (task.app === app ? task.name : `${task.app}/${task.name}`));
}

export function ParentsSection({ draft }: { draft: Draft }) {
  const { t } = useTranslation("tasks");
  const names = useNames(draft);
  const { parents } = draft.values;
  const change = (index: number, parent: Parent) => draft.set("parents", parents.with(index, parent));
  return (
    <>
      <Labelled draft={draft} name="parents" isGroup>
        <Flex vertical gap="small">
          {parents.map((parent, index) => (
            // A row has no other identity than its place.
            <ParentRow
              key={index}
              parent={parent}
              names={names}
              onChange={(changed) => change(index, changed)}
              onRemove={() => draft.set("parents", parents.toSpliced(index, 1))}
            />
          ))}
          <div>
            <Button icon={<PlusOutlined aria-hidden />} disabled={parents.length >= MAX_PARENTS} onClick={() => draft.set("parents", [...parents, { task: "", on: "success" }])}>
              {t("editor.add_parent")}
            </Button>
          </div>
        </Flex>
      </Labelled>
      {parents.length > 1 && <ChoiceRadios draft={draft} name="parent_rule" />}
      {parents.length > 0 && <YesNoField draft={draft} name="parent_output" />}
    </>
  );
}

function ParentRow({ parent, names, onChange, onRemove }: { parent: Parent; names: string[]; onChange: (parent: Parent) => void; onRemove: () => void }) {
  const { t } = useTranslation("tasks");
  const words = useChoiceWords()("outcome");
  return (
    <Flex gap="small" wrap>
      <AutoComplete
        aria-label={t("editor.parent_task")}
        placeholder={t("editor.parent_task")}
        value={parent.task}
        onChange={(task: string) => onChange({ ...parent, task })}
        options={names.map((value) => ({ value }))}
        showSearch={{ filterOption: (typed, option) => option?.value.toLowerCase().includes(typed.toLowerCase()) ?? false }}
        className="wide-select"
      />
      <Select
        aria-label={t("editor.parent_on")}
        value={parent.on ?? "success"}
        onChange={(on) => onChange({ ...parent, on })}
        options={OUTCOMES.map((value) => ({ value, label: words[value]?.name ?? value, title: words[value]?.help }))}
        className="short-select"
      />
      <Button icon={<DeleteOutlined aria-hidden />} aria-label={t("editor.remove_parent", { name: parent.task })} onClick={onRemove} />
    </Flex>
  );
}
