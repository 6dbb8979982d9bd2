import { Alert, Button, Divider, Form, Input, Typography } from "antd";
import type { TFunction } from "i18next";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { $api, client, Problem, setToken } from "../../api/client";
import { Failure } from "../../parts/Failure";
import { Gate } from "./Gate";

interface Credentials {
  name: string;
  password: string;
}

const SINGLE_FAILED = ["expired", "state", "refused", "not_allowed", "provider", "too_many", "unavailable"] as const;

/** What the node said of a single sign-on that failed, in words; it sends browsers back here with `?error=`. */
function singleSignOnFailure(t: TFunction<"people">): string | undefined {
  const word = new URLSearchParams(window.location.search).get("error");
  if (word === null || window.location.pathname !== "/sign-in") return undefined;
  const known = SINGLE_FAILED.find((each) => each === word);
  return t(`sign_in.single_failed.${known ?? "other"}`);
}

/** Where to go after single sign-on: where one wanted to go, but never out of this console. */
function wanted(): string {
  const { pathname, search } = window.location;
  return pathname === "/sign-in" ? "/" : `${pathname}${search}`;
}

function Refused({ error }: { error: unknown }) {
  const { t } = useTranslation("people");
  if (!(error instanceof Problem) || (error.status !== 401 && error.status !== 429)) return <Failure error={error} />;
  const title = error.status === 401 ? t("sign_in.wrong") : t("sign_in.throttled", { seconds: error.retryAfter ?? 1 });
  return <Alert type="error" showIcon role="alert" title={title} description={t("sign_in.disabled_hint")} />;
}

export default function SignIn({ onSignedIn }: { onSignedIn: () => void }) {
  const { t } = useTranslation("people");
  const logins = $api.useQuery("get", "/login");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const signIn = async (credentials: Credentials) => {
    setBusy(true);
    try {
      const { data } = await client.POST("/login", { body: credentials });
      setToken(data?.csrf);
      if (window.location.pathname === "/sign-in") window.history.replaceState(null, "", "/");
      onSignedIn();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  const single = logins.data?.single_sign_on;
  const failed = singleSignOnFailure(t);
  return (
    <Gate title={t("sign_in.title")}>
      {failed !== undefined && error === null && <Alert type="warning" showIcon role="alert" title={failed} />}
      <Refused error={error} />
      {single != null && (
        <>
          <Button block href={`/api/v1/login/oidc?return_to=${encodeURIComponent(wanted())}`}>
            {t("sign_in.single", { name: single })}
          </Button>
          <Divider plain>{t("sign_in.or")}</Divider>
        </>
      )}
      <Form<Credentials> layout="vertical" requiredMark={false} onFinish={(credentials) => void signIn(credentials)}>
        <Form.Item name="name" label={t("sign_in.name")} rules={[{ required: true }]}>
          {/* One came here to sign in. */}
          {/* eslint-disable-next-line jsx-a11y/no-autofocus */}
          <Input autoComplete="username" autoFocus />
        </Form.Item>
        <Form.Item name="password" label={t("sign_in.password")} rules={[{ required: true }]}>
          <Input.Password autoComplete="current-password" />
        </Form.Item>
        <Button type="primary" htmlType="submit" block loading={busy}>
          {t("sign_in.submit")}
        </Button>
      </Form>
      <Typography.Paragraph type="secondary" className="gate-hint">
        {t("sign_in.first")}
      </Typography.Paragraph>
    </Gate>
  );
}
