package rules

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
)

// The fields of a principal, of annotations and of a client in expressions.
type (
	principal struct {
		ID      string         `cel:"id"`
		Subject string         `cel:"subject"`
		Issuer  string         `cel:"issuer"`
		Client  string         `cel:"client"`
		Name    string         `cel:"name"`
		Scheme  string         `cel:"scheme"`
		Scopes  []string       `cel:"scopes"`
		Roles   []string       `cel:"roles"`
		Claims  map[string]any `cel:"claims"`
	}
	annotations struct {
		Title       string   `cel:"title"`
		ReadOnly    bool     `cel:"readOnlyHint"`
		Destructive bool     `cel:"destructiveHint"`
		Idempotent  bool     `cel:"idempotentHint"`
		OpenWorld   bool     `cel:"openWorldHint"`
		Audience    []string `cel:"audience"`
		Priority    float64  `cel:"priority"`
	}
	client struct {
		Name    string `cel:"name"`
		Title   string `cel:"title"`
		Version string `cel:"version"`
	}
)

// variables are the names that expressions use.
var variables = []string{"annotations", "arguments", "client", "kind", "method", "name", "principal", "server", "template"}

// fields are the names behind the dots of variables.
var fields = sync.OnceValue(func() (all []string) {
	for _, t := range []reflect.Type{reflect.TypeFor[principal](), reflect.TypeFor[annotations](), reflect.TypeFor[client]()} {
		for f := range t.Fields() {
			all = append(all, f.Tag.Get("cel"))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
})

// environment is the environment in which expressions are compiled. It is made with the first
// one, so that a program without a policy does not pay for it.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	tags := types.ParseStructTags(true)
	return cel.NewEnv(
		cel.Types(
			cel.NativeTypeFor[principal](cel.NativeTypeAlias("Principal"), tags),
			cel.NativeTypeFor[annotations](cel.NativeTypeAlias("Annotations"), tags),
			cel.NativeTypeFor[client](cel.NativeTypeAlias("Client"), tags),
		),
		cel.Variable("principal", cel.ObjectType("Principal")),
		cel.Variable("annotations", cel.ObjectType("Annotations")),
		cel.Variable("client", cel.ObjectType("Client")),
		cel.Variable("server", cel.StringType),
		cel.Variable("kind", cel.StringType),
		cel.Variable("name", cel.StringType),
		cel.Variable("template", cel.StringType),
		cel.Variable("method", cel.StringType),
		cel.Variable("arguments", cel.MapType(cel.StringType, cel.DynType)),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(maxWhen),
		cel.ExpressionNodeLimit(2000),
		cel.RegexProgramSizeLimit(10_000),
		cel.ASTValidators(cel.ValidateRegexLiterals()),
	)
})

// kindMethod is the kind of a method of an extension.
const kindMethod = "method"

// kindPage is the kind of an access to the page of the program.
const kindPage = "page"

// kinds are the values of kind.
var kinds = []string{string(mcp.KindTool), string(mcp.KindPrompt), string(mcp.KindResource), kindMethod, kindPage}

// values gives expressions the variables of one access, each made when first used. It is used by
// one goroutine.
type values struct {
	a    *policy.Access
	made [9]ref.Val // in the order of variables
}

// Parent is nil: there is no other scope.
func (v *values) Parent() cel.Activation { return nil }

// ResolveName returns the value of a variable.
func (v *values) ResolveName(name string) (any, bool) {
	at, ok := slices.BinarySearch(variables, name)
	if !ok {
		return nil, false
	}
	if v.made[at] == nil {
		v.made[at] = v.make(name)
	}
	return v.made[at], true
}

func (v *values) make(name string) ref.Val {
	switch a := v.a; name {
	case "principal":
		return adapt(principalOf(a))
	case "annotations":
		return adapt(annotationsOf(a))
	case "arguments":
		args, err := argumentsOf(a.Arguments)
		if err != nil {
			return types.NewErr("the arguments: %v", err)
		}
		return adapt(args)
	case "client":
		if a.Client == nil {
			return adapt(&client{})
		}
		c := a.Client()
		return adapt(&client{c.Name, c.Title, c.Version})
	case "server":
		return types.String(a.Server)
	case "kind":
		if a.Kind == "" {
			return types.String(kindMethod)
		}
		return types.String(a.Kind)
	case "name":
		return types.String(a.Name)
	case "template":
		return types.String(a.Template)
	case "method":
		return types.String(a.Method)
	}
	return types.NewErr("unknown field %q", name)
}

// adapt converts a value to CEL.
func adapt(v any) ref.Val {
	env, err := environment()
	if err != nil {
		return types.WrapErr(err)
	}
	return env.CELTypeAdapter().NativeToValue(v)
}

func principalOf(a *policy.Access) *principal {
	p := a.Principal
	if p == nil {
		return &principal{}
	}
	return &principal{p.ID, p.Subject, p.Issuer, p.ClientID, p.Name, p.Scheme, p.Scopes, p.Roles, p.Claims}
}

func annotationsOf(a *policy.Access) *annotations {
	n := &policy.Unannotated
	if a.Annotations != nil {
		if said := a.Annotations(); said != nil {
			n = said
		}
	}
	return &annotations{n.Title, n.ReadOnly, n.Destructive, n.Idempotent, n.OpenWorld, n.Audience, n.Priority}
}

// argumentsOf decodes arguments. None are an empty map.
func argumentsOf(raw []byte) (map[string]any, error) {
	switch jsonx.KindOf(raw) {
	case 0, 'n':
		return map[string]any{}, nil
	case '{':
	default:
		return nil, errors.New("they are not an object")
	}
	const maxDepth = 128
	if err := jsonx.Valid(raw, maxDepth); err != nil {
		return nil, err
	}
	v, err := decode(raw)
	if err != nil {
		return nil, err
	}
	return v.(map[string]any), nil
}

// decode converts valid JSON to Go values. Whole numbers that fit become int64.
func decode(raw []byte) (any, error) {
	switch jsonx.KindOf(raw) {
	case '{':
		m := map[string]any{}
		for name, v := range jsonx.Members(raw) {
			value, err := decode(v)
			if err != nil {
				return nil, err
			}
			m[string(name)] = value
		}
		return m, nil
	case '[':
		list := []any{}
		for e := range jsonx.Elements(raw) {
			v, err := decode(e)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case '"':
		return jsonx.Unquote(raw)
	case 't':
		return true, nil
	case 'f':
		return false, nil
	case 'n':
		return types.NullValue, nil
	}
	text := string(raw)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %.40s is too large", text)
	}
	return n, nil
}
