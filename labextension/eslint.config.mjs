import js from '@eslint/js';
import a11y from 'eslint-plugin-jsx-a11y';
import hooks from 'eslint-plugin-react-hooks';
import globals from 'globals';
import typescript from 'typescript-eslint';

export default typescript.config(
  { ignores: ['**/lib/', '**/dist/', '**/node_modules/', 'backendai_lab/', '**/schema.d.ts'] },
  js.configs.recommended,
  {
    files: ['**/*.{ts,tsx,mts}'],
    extends: [...typescript.configs.strict, ...typescript.configs.stylistic],
    rules: {
      '@typescript-eslint/consistent-type-imports': [
        'error',
        { fixStyle: 'inline-type-imports' }
      ],
      '@typescript-eslint/no-non-null-assertion': 'error',
      eqeqeq: 'error'
    }
  },
  {
    files: ['**/*.tsx'],
    ...a11y.flatConfigs.recommended,
    rules: {
      ...a11y.flatConfigs.recommended.rules,
      // A table laid out as cards needs its roles said aloud.
      'jsx-a11y/no-redundant-roles': 'off',
      'jsx-a11y/no-autofocus': ['error', { ignoreNonDOM: true }],
      'jsx-a11y/label-has-associated-control': ['error', { assert: 'either' }]
    }
  },
  {
    files: ['**/*.{ts,tsx}'],
    plugins: { 'react-hooks': hooks },
    rules: {
      'react-hooks/rules-of-hooks': 'error',
      'react-hooks/exhaustive-deps': 'error'
    }
  },
  {
    files: ['packages/**/*.{ts,tsx}'],
    ignores: ['packages/ui/src/kit/**'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              group: ['@mui/*', '@emotion/*'],
              message: 'Only ui/kit knows the component library, so that it can be replaced.'
            }
          ]
        }
      ]
    }
  },
  {
    files: ['packages/**/*.{ts,tsx}'],
    ignores: ['packages/ui/src/secure.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        ...[
          ['crypto', 'randomUUID', 'newId'],
          ['navigator', 'clipboard', 'copyText']
        ].map(([object, property, instead]) => ({
          object,
          property,
          message: `It is absent over plain HTTP: use ${instead} of ui/secure.`
        }))
      ]
    }
  },
  { files: ['scripts/*.mjs', '*.mjs'], languageOptions: { globals: globals.node } }
);
