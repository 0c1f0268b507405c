import { Component, type ReactNode } from 'react';
import { again } from '../again';
import { LoadError } from '../LoadError';

interface Props {
  /** Forget what could not be loaded, so that it is asked for again. */
  onRetry(): void;
  children: ReactNode;
}

/** A page that could not be loaded or shown leaves everything around it standing. */
export class Boundary extends Component<Props, { error: Error | null }> {
  override state = { error: null };

  static getDerivedStateFromError(error: unknown): { error: Error } {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) {
      return this.props.children;
    }
    const retry = (): void => {
      this.props.onRetry();
      this.setState({ error: null });
    };
    return <LoadError error={error} onRetry={() => again(retry)} />;
  }
}
