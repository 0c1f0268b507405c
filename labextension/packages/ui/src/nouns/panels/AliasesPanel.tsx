/** Other names under which an image may be asked for. */
import { useQuery } from '@tanstack/react-query';
import { Plus, X } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useHost } from '../../host';
import { Field } from '../../kit/Field';
import { meQuery } from '../../queries';
import { ask } from '../client';
import type { Shown } from '../noun';
import { isSuperadmin } from '../roles';
import { useAct } from '../useAct';
import { WhyButton } from '../WhyButton';

export function AliasesPanel({ row }: { row: Shown<'images'> }): JSX.Element {
  const { t } = useTranslation();
  const host = useHost();
  const me = useQuery(meQuery(host)).data;
  const [name, setName] = useState('');
  const act = useAct(['noun', 'images']);
  const writes = me !== undefined && isSuperadmin(me);
  const path = `/api/images/${encodeURIComponent(row.id)}/aliases`;
  const change = (body: object): Promise<unknown> => ask(host, 'POST', path, { body });
  const aliases = row.aliases ?? [];
  return (
    <>
      {aliases.length ? (
        <ul className="bai-tokens">
          {aliases.map(alias => (
            <li key={alias}>
              <code>{alias}</code>
              {writes ? (
                <button
                  type="button"
                  className="bai-square"
                  aria-label={t('form.removeRow', { name: alias })}
                  disabled={act.busy}
                  onClick={() =>
                    void act.run(
                      () => change({ remove: [alias] }),
                      t('images.aliasRemoved', { name: alias }),
                      () => void act.run(() => change({ add: [alias] }))
                    )
                  }
                >
                  <X size={14} aria-hidden />
                </button>
              ) : null}
            </li>
          ))}
        </ul>
      ) : (
        <p className="bai-help">{t('images.noAliases')}</p>
      )}
      {writes ? (
        <div className="bai-inline-form">
          <Field label={t('images.alias')} value={name} onChange={setName} />
          <WhyButton
            icon={<Plus size={16} aria-hidden />}
            busy={act.busy}
            why={name.trim() ? undefined : t('bulkUsers.blocked')}
            onClick={() =>
              void act
                .run(
                  () => change({ add: [name.trim()] }),
                  t('images.aliasAdded', { name: name.trim() })
                )
                .then(done => done && setName(''))
            }
          >
            {t('form.addRow')}
          </WhyButton>
        </div>
      ) : null}
    </>
  );
}
