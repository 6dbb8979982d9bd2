/** Keeps a page that fails from taking the console with it. */
import { Component, type ReactNode } from "react";
import { Failure } from "../parts/Failure";

interface Properties {
  children: ReactNode;
  /** A new value resets it: the address, for example. */
  about: string;
}

export class Boundary extends Component<Properties, { error: unknown; about: string }> {
  override state = { error: null as unknown, about: this.props.about };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  static getDerivedStateFromProps(next: Properties, state: { about: string }) {
    return next.about === state.about ? null : { error: null, about: next.about };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return <Failure error={this.state.error} again={() => window.location.reload()} />;
  }
}
