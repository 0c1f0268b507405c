import { useEffect, useState, type ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { again } from '../again';
import { LoadError } from '../LoadError';
import { hasAreas, loadAreas, type Area } from './index';

interface Props {
  of: readonly Area[];
  /** What is shown until the words are there. */
  meanwhile?: ReactNode;
  children: ReactNode;
}

/** Show a page once the words it needs are loaded. */
export function Texts({ of: areas, meanwhile = null, children }: Props): ReactNode {
  const { i18n } = useTranslation();
  const [loads, setLoads] = useState(0);
  const [error, setError] = useState<Error | null>(null);
  const ready = hasAreas(i18n, areas);
  const { language } = i18n;
  useEffect(() => {
    if (ready) {
      return;
    }
    // Somebody may choose another language meanwhile, whose words are others.
    loadAreas(i18n, areas).then(
      () => setLoads(done => done + 1),
      (reason: unknown) =>
        setError(reason instanceof Error ? reason : new Error(String(reason)))
    );
  }, [i18n, language, areas, ready, loads]);
  if (ready) {
    return children;
  }
  if (error === null) {
    return meanwhile;
  }
  const retry = (): void => {
    setError(null);
    setLoads(done => done + 1);
  };
  return <LoadError error={error} onRetry={() => again(retry)} />;
}
