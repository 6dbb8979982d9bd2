/** Permissions by the thing they are about, each with what it allows; to choose from, or only to read. */
import { Button, Checkbox, Flex, Input, Tooltip, Typography } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useSession } from "../api/session";
import { groupPermissions, type PermissionGroup } from "../lib/access";
import { useDescribed } from "../lib/described";

interface Properties {
  /** Those that are chosen; a form's field gives and takes them. */
  value?: readonly string[];
  onChange?: (chosen: string[]) => void;
  /** Why one cannot be chosen. */
  refused?: (permission: string) => string | undefined;
  /** Only shows those that are chosen. */
  readOnly?: boolean;
  id?: string;
}

export function PermissionPicker({ value = [], onChange, refused = () => undefined, readOnly = false, id }: Properties) {
  const { t } = useTranslation("people");
  const { me } = useSession();
  const described = useDescribed();
  const [search, setSearch] = useState("");
  const all = me.permissions.map(described);
  const shown = readOnly ? all.filter(({ name }) => value.includes(name)) : all;
  const groups = groupPermissions(shown, search);
  const set = (names: readonly string[], on: boolean) => {
    const allowed = names.filter((name) => !on || refused(name) === undefined);
    const chosen = on ? new Set([...value, ...allowed]) : new Set(value.filter((name) => !allowed.includes(name)));
    onChange?.(all.map(({ name }) => name).filter((name) => chosen.has(name)));
  };
  return (
    <Flex vertical gap="small" id={id}>
      <Flex gap="small" align="center" wrap>
        <Input.Search allowClear className="picker-search" placeholder={t("picker.search")} aria-label={t("picker.search")} value={search} onChange={(event) => setSearch(event.target.value)} />
        <Typography.Text type="secondary" aria-live="polite">
          {t(readOnly ? "roles.count" : "picker.chosen", { chosen: value.length, count: value.length, all: all.length })}
        </Typography.Text>
      </Flex>
      {/* It scrolls, also where nothing in it may be chosen. */}
      { }
      <div className={readOnly ? "picker" : "picker picker-choice"} role="group" aria-label={t("roles.permissions")} {...(readOnly ? {} : { tabIndex: 0 })}>
        {groups.map((group) => (
          <Group key={group.resource} group={group} value={value} set={set} refused={refused} readOnly={readOnly} />
        ))}
        {groups.length === 0 && <Typography.Text type="secondary">{t("picker.nothing")}</Typography.Text>}
      </div>
    </Flex>
  );
}

interface GroupProperties {
  group: PermissionGroup;
  value: readonly string[];
  set: (names: readonly string[], on: boolean) => void;
  refused: (permission: string) => string | undefined;
  readOnly: boolean;
}

function Group({ group, value, set, refused, readOnly }: GroupProperties) {
  const { t } = useTranslation("people");
  const names = group.permissions.map(({ name }) => name);
  const free = names.filter((name) => refused(name) === undefined);
  const isFull = free.length > 0 && free.every((name) => value.includes(name));
  return (
    <fieldset className="picker-group">
      <legend>
        <strong className="mono">{group.resource}</strong>
        {!readOnly && free.length > 1 && (
          <Button type="link" size="small" onClick={() => set(free, !isFull)} aria-label={t(isFull ? "picker.none_of" : "picker.all_of", { resource: group.resource })}>
            {t(isFull ? "picker.none" : "picker.all")}
          </Button>
        )}
      </legend>
      {group.permissions.map(({ name, description }) => {
        const operation = name.slice(group.resource.length + 1);
        const why = refused(name);
        const words = (
          <>
            <span className="mono">{operation}</span> <span className="picker-what">{description}</span>
          </>
        );
        if (readOnly) return <div key={name}>{words}</div>;
        return (
          <div key={name}>
            <Tooltip title={why}>
              <Checkbox checked={value.includes(name)} disabled={why !== undefined} onChange={(event) => set([name], event.target.checked)}>
                {words}
                {why !== undefined && <span className="picker-why"> {why}</span>}
              </Checkbox>
            </Tooltip>
          </div>
        );
      })}
    </fieldset>
  );
}
