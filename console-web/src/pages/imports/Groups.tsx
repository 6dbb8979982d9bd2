/** What was a group there, and how much of it runs here. */
import { Button, Flex } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { PROGRESS_TONES, type Group, type Side } from "../../lib/imports";
import { useLink } from "../../lib/tenant";
import { SmallTable } from "../../parts/SmallTable";
import { Word } from "../../parts/Tags";

interface Properties {
  tenant: string;
  groups: readonly Group[];
  chosen: Group | undefined;
  choose: (group: Group | undefined) => void;
}

const SIDES: readonly Side[] = ["here", "paused", "back", "waiting"];

export function Groups({ tenant, groups, chosen, choose }: Properties) {
  const { t } = useTranslation("imports");
  const { t: common } = useTranslation();
  const link = useLink();
  const columns = [{ title: t("groups.source") }, { title: t("groups.group") }, { title: common("status") }, { title: t("groups.tasks") }, { title: common("actions") }];
  const rows = groups.map((group) => {
    const isChosen = group === chosen;
    return {
      key: `${group.source}#${group.app}`,
      cells: [
        group.source,
        <Link key="app" to={link("/tasks", { tenant, app: group.app })}>
          {group.app}
        </Link>,
        <Word key="progress" tone={PROGRESS_TONES[group.progress]}>
          {t(`progress.${group.progress}`)}
        </Word>,
        <Counts key="counts" of={group} />,
        <Button key="choose" size="small" aria-label={`${t(isChosen ? "groups.all" : "groups.choose")}: ${group.app}`} onClick={() => choose(isChosen ? undefined : group)}>
          {t(isChosen ? "groups.all" : "groups.choose")}
        </Button>,
      ],
    };
  });
  return (
    <Flex vertical gap="small">
      <p className="soft card-lead">{t("groups.help")}</p>
      <div className="scrolls-aside">
        <SmallTable columns={columns} rows={rows} />
      </div>
    </Flex>
  );
}

/** How many of its tasks are where; those that are nowhere are not named. */
function Counts({ of: { counts } }: { of: Group }) {
  const { t } = useTranslation("imports");
  return (
    <span>
      {SIDES.filter((side) => counts[side] > 0)
        .map((side) => t(`count.${side}`, { n: counts[side] }))
        .join(" · ")}
    </span>
  );
}
