/** What to do where no executor is online. */
import { Typography } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useSession } from "../../api/session";
import { useLink } from "../../lib/tenant";

export function NoExecutors() {
  const { t: own } = useTranslation("executors");
  const { may } = useSession();
  const link = useLink();
  return (
    <div className="steps">
      <Typography.Paragraph>{own("executors.empty_steps")}</Typography.Paragraph>
      <ol>
        <li>{own("executors.empty_step_key")}</li>
        <li>{own("executors.empty_step_env")}</li>
        <li>{own("executors.empty_step_start")}</li>
      </ol>
      <Typography.Paragraph>{own("executors.empty_xxljob")}</Typography.Paragraph>
      {may("apps.read") && <Link to={link("/apps")}>{own("executors.empty_to_apps")}</Link>}
    </div>
  );
}
