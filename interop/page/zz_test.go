package page
import ("testing";"os";"github.com/patchbay-dev/patchbay/interop/internal/browser")
func TestZZ(t *testing.T) {
	p, origin := opened(t, "inspect", "--no-open", "everything")
	s,_:=os.ReadFile("../npm/node_modules/axe-core/axe.min.js")
	for _, path := range []string{"/s/everything","/wire","/apps/everything/roll_dice"} {
	p.GoTo(origin+path)
	p.Until(`!!document.querySelector("[data-ready]")`)
	browser.Eval[bool](p, string(s)+";\ntrue")
	t.Log(path, browser.Eval[string](p, `(async () => { const r=[]; for (const o of [{}, {}, {resultTypes:["violations"]}, {resultTypes:["violations"],runOnly:{type:"tag",values:["cat.color"]}},{resultTypes:["violations"],preload:false},{resultTypes:["violations"],rules:{"color-contrast":{enabled:false}}}]) { const t=performance.now(); await axe.run(document,o); r.push(Math.round(performance.now()-t)) } return r.join(" ") + " elements " + document.querySelectorAll("*").length })()`))
	}
}
