// Command client lists the tools of a server, lets its user choose one, asks for the arguments, and
// calls the tool:
//
//	go run ./examples/client http://127.0.0.1:7420/mcp
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// use returns the text of the tool that the lines of in choose.
func use(ctx context.Context, s *mcp.Session, in io.Reader, out io.Writer) (string, error) {
	lines := bufio.NewScanner(in)
	ask := func(question string) (string, error) {
		fmt.Fprint(out, question, ": ")
		if !lines.Scan() {
			return "", errors.Join(lines.Err(), io.ErrUnexpectedEOF)
		}
		return lines.Text(), nil
	}
	var tools []*mcp.Tool
	for tool, err := range s.Tools(ctx) {
		if err != nil {
			return "", err
		}
		tools = append(tools, tool)
		fmt.Fprintln(out, len(tools), tool.Name, "-", tool.Description)
	}
	choice, err := ask("Number of the tool")
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(choice)
	if err != nil || n < 1 || n > len(tools) {
		return "", fmt.Errorf("%q is not a number from 1 to %d", choice, len(tools))
	}
	form, err := schema.FormOf(tools[n-1].InputSchema)
	if err != nil {
		return "", err
	}
	args := map[string]any{}
	for i := 0; i < len(form.Fields); {
		f := form.Fields[i]
		text, err := ask(fmt.Sprintf("%s (%s) %s", f.Name, f.Kind, f.Description))
		if err != nil {
			return "", err
		}
		if text != "" || f.Required {
			if args[f.Name], err = f.Parse(text); err != nil {
				fmt.Fprintln(out, err) // and ask again
				continue
			}
		}
		i++
	}
	res, err := s.CallTool(ctx, tools[n-1].Name, args)
	if err != nil {
		return "", err
	}
	if res.IsError {
		return "", errors.New(res.Text())
	}
	return res.Text(), nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: client URL")
	}
	ctx := context.Background()
	s, err := (&mcp.Client{Name: "chooser", Version: "1.0.0"}).Dial(ctx, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	text, err := use(ctx, s, os.Stdin, os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
}
