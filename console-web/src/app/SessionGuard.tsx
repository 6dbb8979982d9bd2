/** Before the console: who is it, and must they choose a new password? */
import { Flex } from "antd";
import { lazy, Suspense } from "react";
import { SessionProvider, useMe } from "../api/session";
import { Failure } from "../parts/Failure";
import { Waiting } from "../parts/Waiting";
import { Console } from "./Console";
import { Boundary } from "./Boundary";

const SignIn = lazy(() => import("../pages/sign-in/SignIn"));
const NewPassword = lazy(() => import("../pages/sign-in/NewPassword"));

export function SessionGuard() {
  const { me, error, again } = useMe();
  if (me === undefined) {
    return error === null ? (
      <Waiting />
    ) : (
      <Flex justify="center" className="before-login">
        <Failure error={error} again={again} />
      </Flex>
    );
  }
  if (me !== null && !me.must_change_password) {
    return (
      <SessionProvider me={me}>
        <Console />
      </SessionProvider>
    );
  }
  return (
    <Boundary about={me === null ? "sign-in" : "password"}>
      <Suspense fallback={<Waiting />}>{me === null ? <SignIn onSignedIn={again} /> : <NewPassword me={me} onChanged={again} />}</Suspense>
    </Boundary>
  );
}
